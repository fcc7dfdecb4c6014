// SPDX-License-Identifier: MIT
// comparison: two recordings, opened, filtered alike and compared, for every command that does so.
//
//   OLD, NEW --profile_open--> profiles --filter words--> selections --diff_build--> struct diff
//
// A time range means the same time in both, each rounded to its own slices. Context: H. Failure: a
// sentence.
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "cli/options/filter_options.h"
#include "profile/compare/diff.h"

// What figures are per, as typed after --per. Zeroed: nothing.
struct per {
    struct diff_units units;
    bool is_set;
    bool is_second; // seconds of the run
    bool has_both;  // OLD:NEW
};

// "second", "N" or "OLD:NEW", numbers above 0. False if it is none of these.
bool per_parse(const char *text, struct per *out);

// "a second of the run", "each of 1,000, old: of 900".
void per_append(const struct per *per, struct strbuf *out);

struct comparison {
    struct profile *profiles[SIDE_COUNT];      // owned, but see comparison_init
    struct code_union code;                    // owned
    struct applied_filter filters[SIDE_COUNT]; // owned
    struct selection selections[SIDE_COUNT];   // owned
    struct diff diff;                          // owned
    bool borrows_new;
};

// `new` is opened already and outlives the comparison, the old recording is read from `old_path`,
// its names also from `sources`. Says on stderr what must be known before any number is believed.
enum err comparison_init(struct comparison *comparison,
                         struct profile *new,
                         const char *old_path,
                         const struct name_sources *sources,
                         const struct filter_words *words,
                         const struct per *per,
                         struct err_info *info) MUST_USE;

// Both are opened.
enum err comparison_open(struct comparison *comparison,
                         const char *new_path,
                         const char *old_path,
                         const struct name_sources *sources,
                         const struct filter_words *words,
                         const struct per *per,
                         struct err_info *info) MUST_USE;

void comparison_release(struct comparison *comparison);
