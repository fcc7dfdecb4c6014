// SPDX-License-Identifier: MIT
// comparison: opens two recordings, applies the same filter to both and compares them; or two
// parts of one recording.
//
//   OLD, NEW --profile_open--> profiles --filter words--> selections --diff_build--> struct diff
//
// A time range means the same time in both recordings, rounded to the slices of each. Context: H.
// Failure: a sentence.
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "cli/options/filter_options.h"
#include "profile/compare/diff.h"

// The divisors of the figures, as typed after --per. Zeroed: no division.
struct per {
    struct diff_units units;
    bool is_set;
    bool is_second; // seconds of the run
    bool has_both;  // OLD:NEW
};

// Parse "second", "N" or "OLD:NEW" with numbers above 0. Return false for any other text.
bool per_parse(const char *text, struct per *out);

// Append "the run time" or "1,000 (old: 900)".
void per_append(const struct per *per, struct strbuf *out);

// The two moments or ranges of one recording that `cairn diff FILE --between` compares.
//
//   --between warm done          the heap at the mark "warm", and at the mark "done"
//   --between 2s 1m              the same by times
//   --between load..warm 1m..2m  what happened in one range, and in another
//
// A moment is the part of the run up to it, so its live blocks are those of the moment. A mark is
// named by its text; where several have one text, text#2 is the second.
struct between {
    const char *parts[SIDE_COUNT]; // as typed; NULL: nothing of the kind was asked for
};

// Whether both parts are moments: only what is live then can be compared.
bool between_is_of_moments(const struct between *between);

struct comparison {
    struct profile *profiles[SIDE_COUNT];      // owned, except for what comparison_init borrows
    struct code_union code;                    // owned
    struct applied_filter filters[SIDE_COUNT]; // owned
    struct selection selections[SIDE_COUNT];   // owned
    struct diff diff;                          // owned
    bool borrows_new;
    bool has_one_profile; // both sides are parts of one recording
};

// Compare `new`, which is open and must outlive the comparison, with the recording at `old_path`.
// `sources` add names to the old recording. Print warnings about both recordings on stderr first.
// The caller releases the comparison, also after a failure.
enum err comparison_init(struct comparison *comparison,
                         struct profile *new,
                         const char *old_path,
                         const struct name_sources *sources,
                         const struct filter_words *words,
                         const struct per *per,
                         struct err_info *info) MUST_USE;

// Compare two recordings by their paths, the same.
enum err comparison_open(struct comparison *comparison,
                         const char *new_path,
                         const char *old_path,
                         const struct name_sources *sources,
                         const struct filter_words *words,
                         const struct per *per,
                         struct err_info *info) MUST_USE;

// Compare two parts of the recording at `path`.
enum err comparison_open_between(struct comparison *comparison,
                                 const char *path,
                                 const struct between *between,
                                 const struct name_sources *sources,
                                 const struct filter_words *words,
                                 const struct per *per,
                                 struct err_info *info) MUST_USE;

void comparison_release(struct comparison *comparison);
