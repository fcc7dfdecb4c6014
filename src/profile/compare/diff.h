// SPDX-License-Identifier: MIT
// diff: what changed from one recording to another, by function and by stack.
//
// Recordings of one program, or of two builds of it, are compared by what people call the code: a
// stack is the functions on its way (code_union.h), inlined ones included, so that addresses, line
// numbers and what the compiler inlined may differ. Stacks are put together by their call site's
// function, the innermost that is not wrapper_frames:
//
//   load()    57.2 MiB -> 64.0 MiB    GROWN      <- struct diff_entry
//     main > load > strdup   +6.80 MiB           <- one of its stacks, a node of `tree`
//
// Runs of different length are made comparable by a unit: amounts that grow with the run
// (allocations, frees, temporary, leaked) are divided by it, levels (peaks) are not.
// A cost that a recording does not know (selection_knows) is not compared: its changes have no
// numbers (NAN) and are of DIFF_UNKNOWN.
// Invariants: the sum of all entries is the selection's, on each side; an entry is the sum of its
// stacks. Context: H; read-only once built.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "profile/calls/tree_view.h"
#include "profile/tables/summary.h"

struct diff_entry {
    uint32_t function;    // id in the union; REC_NONE for allocations without any stack
    uint32_t stack_first; // in diff.stacks
    uint32_t stack_count;
    struct costs sides[SIDE_COUNT];
};

DEFINE_VEC(diff_entry_vec, struct diff_entry);

struct diff {
    const struct code_union *code;        // borrowed
    struct tree_view tree;                // owned; top-down, by function
    struct diff_entry_vec entries;        // owned
    struct u32_vec stacks;                // owned; nodes with costs of their own, by entry
    struct summary summaries[SIDE_COUNT]; // of the two selections
    double units[SIDE_COUNT];             // what amounts are divided by
    uint32_t unknown[SIDE_COUNT];         // bit n: that side does not know enum cost n
};

// How many units of work each run did; both 1 for plain figures. They must be above 0.
struct diff_units {
    double sides[SIDE_COUNT];
};

// The seconds that each run, or the part of it that is counted, took, as units; one without a
// length counts as a millisecond.
struct diff_units diff_run_lengths(const struct selection *new, const struct selection *old);

// `code` must be of the selections' profiles. ERR_NO_MEMORY, ERR_LIMIT.
enum err diff_build(const struct code_union *code,
                    const struct selection *new,
                    const struct selection *old,
                    struct diff_units units,
                    struct diff *out) MUST_USE;
void diff_release(struct diff *diff);

// Whether `cost` grows with the run, so that units apply to it.
bool diff_is_amount(enum cost cost);

// Whether both recordings know `cost`, so that it is compared.
bool diff_knows(const struct diff *diff, enum cost cost);

// A cost of one side in units of that side.
double
diff_value(const struct diff *diff, enum side side, const struct costs *costs, enum cost cost);

enum diff_class {
    DIFF_SAME,
    DIFF_NEW,  // it was not there before
    DIFF_GONE, // it is not there any more
    DIFF_GROWN,
    DIFF_SHRUNK,
    DIFF_UNKNOWN, // not to both recordings is the cost known
    DIFF_CLASS_COUNT,
};

// As people and JSON read it: one word.
const char *diff_class_name(enum diff_class class);

struct diff_change {
    double old; // NAN: not known, as the other two
    double new;
    double change; // new - old
    enum diff_class class;
};

// Of an entry, and of the node at which a stack ends.
struct diff_change diff_entry_change(const struct diff *diff, size_t entry, enum cost cost);
struct diff_change diff_stack_change(const struct diff *diff, uint32_t node, enum cost cost);

// Of the whole. What the recordings do not know of their peaks is taken off the change, and the
// class is DIFF_SAME if nothing remains.
struct diff_change diff_total_change(const struct diff *diff, enum cost cost);

// Entries that changed, largest change first, whatever its direction; ties in a fixed order.
enum err diff_ranked(const struct diff *diff, enum cost cost, struct u32_vec *out) MUST_USE;

// The same for the stacks of one entry: nodes.
enum err
diff_ranked_stacks(const struct diff *diff, size_t entry, enum cost cost, struct u32_vec *out)
    MUST_USE;

// Whether a growth is more than `threshold` (a ratio) of what the whole was before; any growth is,
// if that was nothing.
bool diff_is_beyond(const struct diff *diff, enum cost cost, double change, double threshold);
