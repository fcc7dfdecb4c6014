// SPDX-License-Identifier: MIT
// diff: what changed from one recording to another, by function and by stack.
//
// The recordings are of one program, or of two builds of it. A stack is identified by the functions
// on it (code_union.h), inlined ones included. Addresses, line numbers and inlining may differ.
// Stacks are grouped by the function of their call site (wrappers.h):
//
//   load()    57.2 MiB -> 64.0 MiB    GROWN      <- struct diff_entry
//     main > load > strdup   +6.80 MiB           <- one of its stacks, a node of `tree`
//
// Units make runs of different length comparable. Amounts that grow with the run (allocations,
// frees, temporary, leaked) are divided by the unit; levels (peaks) are not.
// A cost that one recording does not know (selection_knows) is not compared: its changes are NAN
// and DIFF_UNKNOWN.
// Invariants: on each side the entries add up to the selection; an entry is the sum of its stacks.
// Context: H; read-only once built.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "profile/accuracy/sampling.h"
#include "profile/calls/tree_view.h"
#include "profile/tables/summary.h"

struct diff_entry {
    uint32_t function;    // id in the union; REC_NONE for allocations without a stack
    uint32_t stack_first; // in diff.stacks
    uint32_t stack_count;
    struct costs sides[SIDE_COUNT];
};

DEFINE_VEC(diff_entry_vec, struct diff_entry);

struct diff {
    const struct code_union *code;        // borrowed
    struct tree_view tree;                // owned; top-down, by function
    struct diff_entry_vec entries;        // owned
    struct u32_vec stacks;                // owned; nodes with costs of their own, grouped by entry
    struct summary summaries[SIDE_COUNT]; // of the two selections
    double units[SIDE_COUNT];             // divisors of amounts
    uint32_t unknown[SIDE_COUNT];         // bit n: that side does not know enum cost n
    struct sampling sampling[SIDE_COUNT]; // of the two recordings
    bool is_everything[SIDE_COUNT];       // the whole recording is selected
};

// The number of units of work in each run; 1 for plain figures. Both must be above 0.
struct diff_units {
    double sides[SIDE_COUNT];
};

// The length of each run, or of its selected part, in seconds. A run without a length counts as a
// millisecond.
struct diff_units diff_run_lengths(const struct selection *new, const struct selection *old);

// Build the comparison. `code` must be of the selections' profiles. Errors: ERR_NO_MEMORY,
// ERR_LIMIT.
enum err diff_build(const struct code_union *code,
                    const struct selection *new,
                    const struct selection *old,
                    struct diff_units units,
                    struct diff *out) MUST_USE;
void diff_release(struct diff *diff);

// Whether `cost` grows with the run, so that it is divided by the unit.
bool diff_is_amount(enum cost cost);

// Whether both recordings know `cost`.
bool diff_knows(const struct diff *diff, enum cost cost);

// Whether at least one recording was sampled by bytes, so that changes have errors.
bool diff_has_errors(const struct diff *diff);

enum diff_class {
    DIFF_SAME,
    DIFF_NEW,  // all its costs were 0 before
    DIFF_GONE, // all its costs are 0 now
    DIFF_GROWN,
    DIFF_SHRUNK,
    DIFF_UNKNOWN, // at least one recording does not know the cost
    DIFF_CLASS_COUNT,
};

// The class as one word, for the report and JSON.
const char *diff_class_name(enum diff_class class);

struct diff_change {
    double old; // all three are NAN if the cost is unknown
    double new;
    double change; // new - old
    enum diff_class class;
    // Two standard errors of estimates (sampling_errors): 0 if they are exact, or the error is not
    // known. The recordings are independent, so the variance of the change is the sum of theirs.
    // The errors of both peaks (summary.h) are bounds unless sampled, and add up.
    double old_error;
    double new_error;
    double change_error;
};

// The change of an entry, and of the stack that ends at a node.
struct diff_change diff_entry_change(const struct diff *diff, size_t entry, enum cost cost);
struct diff_change diff_stack_change(const struct diff *diff, uint32_t node, enum cost cost);

// The change of the whole selection. The peaks are those of the program's own order, and have their
// errors. The peak of a whole recording that was sampled has no other one: unsampled bytes are
// counted, too.
struct diff_change diff_total_change(const struct diff *diff, enum cost cost);

// List the entries that changed, largest absolute change first, ties in a fixed order.
enum err diff_ranked(const struct diff *diff, enum cost cost, struct u32_vec *out) MUST_USE;

// List the stacks of one entry in the same way, as nodes.
enum err
diff_ranked_stacks(const struct diff *diff, size_t entry, enum cost cost, struct u32_vec *out)
    MUST_USE;

// Whether a growth, less its error, exceeds `threshold` (a ratio) of the whole's old value. If that
// is 0, any growth does.
bool diff_is_beyond(const struct diff *diff,
                    enum cost cost,
                    const struct diff_change *change,
                    double threshold);
