// SPDX-License-Identifier: MIT
// filter: which part of a profile a question is about.
//
// Every restriction that is set must hold, so filters compose. A stack passes a restriction on
// function, file or module if any of its frames matches, inlined ones included. A selection is the
// set of rows that passed. What each row contributes is asked with selection_costs, since a time
// range lets a row pass in part: it counts the blocks of the wanted classes (time_range.h), and so
// does a range of sizes or lifetimes (bucket_range.h). Rows that have none do not pass. The
// selection says which costs are then not known, and how much of each is an estimate.
// Suppressions take no row away: they take its leaked costs, and count them.
// Context: H.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "host/os/cancel.h"
#include "profile/model/cost.h"
#include "profile/model/profile.h"
#include "profile/select/bucket_range.h"
#include "profile/select/suppressions.h"
#include "profile/select/time_range.h"

// Texts are NULL for anything. Those called _text are parts of the name, whatever the case; the
// others are POSIX extended regular expressions.
struct filter {
    const char *function;
    const char *function_text;
    const char *file; // path of the source file
    const char *file_text;
    const char *module; // path of the executable or library
    const char *module_text;
    const char *thread; // a thread id, or a name in which * and ? match anything; NULL: any
    uint32_t pid;       // all images of that process; 0: any
    bool has_range;
    struct time_range range; // must come from time_range_covering of the same recording
    bool has_sizes;
    struct bucket_range sizes; // in bytes
    bool has_lifetimes;
    struct bucket_range lifetimes;           // in milliseconds
    const struct suppressions *suppressions; // borrowed; NULL: every leak counts
    struct cancel *cancel; // borrowed; asked by all that is made of the selection; NULL: nobody
};

// The restrictions that ask for something by its name or number.
enum filter_name {
    FILTER_FUNCTION,
    FILTER_FILE,
    FILTER_MODULE,
    FILTER_THREAD,
    FILTER_PROCESS,
    FILTER_NAME_COUNT,
};

struct selection {
    const struct profile *profile; // borrowed
    struct u32_vec rows;           // owned; indices of recording.rows, ascending
    struct costs_vec costs;        // owned; by index in rows; without items: of whole rows
    struct costs estimated;        // what of the sum of each cost is an estimate
    uint32_t unknown;              // bit n: enum cost n cannot be known under this filter and is 0
    uint32_t unmatched;      // bit n: the recording has nothing of what enum filter_name n asks for
    bool has_range;          // of time
    struct time_range range; // of the blocks that pass; the whole run if not restricted
    struct bucket_range sizes; // all buckets if not restricted
    struct bucket_range lifetimes;
    struct u32_vec rules; // owned; by index in rows: the rule that suppresses its leaks, + 1;
                          // without items: none does
    struct suppression_match_vec matches; // owned; by rule of the filter's suppressions
    struct suppression_match suppressed;  // all of them
    bool is_everything;                   // no restriction was set
    struct cancel *cancel;                // borrowed; the filter's
    struct progress *progress; // borrowed; what takes long shows itself there. NULL: silent
};

// ERR_INVALID, ERR_UNSUPPORTED or ERR_LIMIT with a sentence for a regular expression that makes no
// sense or too much work, or for a range of something that was not recorded; ERR_NO_MEMORY;
// what filter->cancel says. Matching nothing is no error: `unmatched` says it. `filter` may be
// NULL: everything.
enum err profile_select(const struct profile *profile,
                        const struct filter *filter,
                        struct selection *out,
                        struct err_info *info) MUST_USE;

void selection_release(struct selection *selection);

// Whether the costs of the selection are known: its source tells them (profile_knows), and the
// filter leaves them so. If not they are 0, or follow from what is known, and are no figures.
bool selection_knows(const struct selection *selection, enum cost cost);

// The rows of the selection whose processes are there at the end of its range: what they hold is
// live then, where the selection also has what others left behind unfreed. `out` may be used and
// released as any selection. ERR_NO_MEMORY.
enum err selection_at_end(const struct selection *selection, struct selection *out) MUST_USE;

// The length of the part of the run that is counted.
uint64_t selection_length_ms(const struct selection *selection);

// What the selected row at `index` (below rows.len) contributes.
struct costs selection_costs(const struct selection *selection, size_t index);
