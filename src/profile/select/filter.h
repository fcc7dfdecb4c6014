// SPDX-License-Identifier: MIT
// filter: the part of a profile that a query is about.
//
// Every restriction that is set must hold, so filters compose. A stack passes a restriction on
// function, file or module if any of its frames matches, inlined ones included. A selection is the
// set of rows that passed.
// A row may pass in part, so its costs come from selection_costs. A time range counts the blocks of
// the wanted classes (time_range.h); a range of sizes or lifetimes counts the blocks in it
// (bucket_range.h). Rows without such blocks do not pass. The selection says which costs are
// unknown, and how much of each is an estimate.
// show_from also shortens the stacks: what calls the outermost matching frame is in no view that
// lists frames. Views take frames from selection_chain, and call sites from selection_call_site.
// Suppressions remove no row: they set the leaked costs of a row to 0, and sum them up by rule.
// Context: H.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "host/os/cancel.h"
#include "host/threads/kept_results.h"
#include "profile/model/cost.h"
#include "profile/model/profile.h"
#include "profile/select/bucket_range.h"
#include "profile/select/suppressions.h"
#include "profile/select/time_range.h"

// A NULL text passes everything. Names ending in _text are substrings, compared without case; the
// others are regular expressions (name_regex.h).
struct filter {
    const char *function;
    const char *function_text;
    const char *file; // path of the source file
    const char *file_text;
    const char *module; // path of the executable or library
    const char *module_text;
    const char *focus;     // a stack has a frame whose function, file or module matches
    const char *ignore;    // no frame of a stack does
    const char *show_from; // like focus, and stacks begin at the outermost such frame
    const char *site_text; // the function, file or module of a stack's call site has it
    const char *thread;    // a thread id, or a name in which * and ? match anything
    uint32_t pid;          // all programs that this process executed; 0: any
    bool has_range;
    struct time_range range; // must come from time_range_covering of the same recording
    bool has_sizes;
    struct bucket_range sizes; // in bytes
    bool has_lifetimes;
    struct bucket_range lifetimes;           // in milliseconds
    const struct suppressions *suppressions; // borrowed; NULL: every leak counts
    struct cancel *cancel; // borrowed; asked by everything computed from the selection; may be NULL
};

// The restrictions by name or number.
enum filter_name {
    FILTER_FUNCTION,
    FILTER_FILE,
    FILTER_MODULE,
    FILTER_THREAD,
    FILTER_PROCESS,
    FILTER_FOCUS,
    FILTER_IGNORE,
    FILTER_SHOW_FROM,
    FILTER_SITE,
    FILTER_NAME_COUNT,
};

struct selection {
    const struct profile *profile; // borrowed
    struct u32_vec rows;           // owned; indices of recording.rows, ascending
    struct costs_vec costs;        // owned; by index in rows; empty if all rows pass whole
    struct costs estimated;        // the part of each cost's sum that is an estimate
    // Bit n: enum cost n is unknown: the recording's source did not measure it, or the filter hides
    // it. It is 0 or derived, and must not be shown as a figure.
    uint32_t unknown;
    uint32_t unmatched;      // bit n: the recording has nothing that enum filter_name n matches
    bool has_range;          // of time
    struct time_range range; // and classes of the blocks that pass; the whole run if not restricted
    struct bucket_range sizes; // all buckets if not restricted
    struct bucket_range lifetimes;
    struct u32_vec rules; // owned; by index in rows: the rule that suppresses its leaks, + 1;
                          // empty if no rule suppresses any
    struct suppression_match_vec matches; // owned; by rule of the filter's suppressions
    struct suppression_match suppressed;  // all of them
    struct flag_vec shown; // owned; by node of the recording: its stack shows its frame; empty: all
    struct flag_vec starts;    // owned; by location: stacks begin at the outermost one
    bool is_everything;        // no restriction was set
    bool is_lent;              // what is owned belongs to another selection
    struct cancel *cancel;     // borrowed; the filter's
    struct kept_results *kept; // borrowed; shared by views of this selection; NULL: nothing is kept
    struct kept_results *trees; // borrowed; the same for whole trees, which take much memory
    struct progress *progress;  // borrowed; shows the progress of long work; NULL: silent
};

// Select the rows that pass. `filter` may be NULL: everything passes. A selection without rows is
// not an error; see `unmatched`. ERR_INVALID, ERR_UNSUPPORTED and ERR_LIMIT come with a sentence: a
// malformed or too costly regular expression, or a range of something not recorded. Other errors:
// ERR_NO_MEMORY, those of filter->cancel.
enum err profile_select(const struct profile *profile,
                        const struct filter *filter,
                        struct selection *out,
                        struct err_info *info) MUST_USE;

void selection_release(struct selection *selection);

// Borrow a selection with all its rows and `kept`, for work that `cancel` may stop.
struct selection selection_lend(const struct selection *selection, struct cancel *cancel);

// Whether the selection knows `cost`: it is not in `unknown`.
bool selection_knows(const struct selection *selection, enum cost cost);

// Check that the selection knows a cost that the user asked for. `who` begins the sentence, such as
// "--sort leaked". ERR_UNSUPPORTED.
enum err selection_need(const struct selection *selection,
                        const char *who,
                        enum cost cost,
                        struct err_info *info) MUST_USE;

// Return whether the process of a row still exists at the end of the range.
bool selection_row_exists(const struct selection *selection, uint32_t row);

// Select the rows whose processes still exist at the end of the range. Their leaked costs are live
// then; the given selection also has the leaks of processes that left. `out` is a selection like
// any other. ERR_NO_MEMORY.
enum err selection_at_end(const struct selection *selection, struct selection *out) MUST_USE;

// The frame of a node as a part of a selected stack: its locations, innermost first. The node must
// not be 0. Without locations, this frame and those of its callers are not shown.
struct code_chain selection_chain(const struct selection *selection, uint32_t node);

// The call site of a node as a part of a selected stack.
struct call_site_location selection_call_site(const struct selection *selection, uint32_t node);

// The length of the selected part of the run.
uint64_t selection_length_ms(const struct selection *selection);

// The costs of the selected row at `index` (below rows.len).
struct costs selection_costs(const struct selection *selection, size_t index);
