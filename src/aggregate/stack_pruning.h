// SPDX-License-Identifier: MIT
// stack_pruning: merges the rarest call stacks when they take too much memory (memory_budget.h).
//
// The weight of a row is the sum of its shares in all allocations, allocated bytes, live bytes and
// bytes at the peak. A stack below the threshold passes its weight on to its caller. Where a caller
// has collected enough, what it collected stays as merged stacks, each with the outer frames down
// to it, a pseudo frame (REC_CUT_MERGED) and the innermost frame; rare innermost frames are merged,
// too. The threshold doubles until few enough entries are left.
//
//   main > parse > list > item > new   5 %         main > parse > list > item > new   5 %
//                       > pair > new   0.1 %   -->                     > [..] > new   0.2 %
//                       > text > new   0.1 %
//
// So a stack above the threshold keeps its entry, and every sum stays exact. All figures that a
// stack lost are at a merged stack whose outer frames are the stack's own; the sum of those bounds
// the loss. Stacks that lanes still use keep their nodes, and get rows again with their next event.
// A merged stack that occurs again is a new one.
// Context: H, one thread, between two passes. Nothing may hold numbers of rows and nodes.
// Failure: ERR_NO_MEMORY, ERR_LIMIT end the recording.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "aggregate/aggregator.h"
#include "base/err.h"
#include "host/containers/vec.h"

// The stacks of a lane by slot, or those of a process's books by the number of their row. An
// element is REC_NONE if there is no stack. Borrowed. `rows` is NULL if the stacks have no rows.
struct stack_slots {
    struct u32_vec *nodes;
    struct u32_vec *rows;
};

DEFINE_VEC(stack_slots_vec, struct stack_slots);

// Merge the rarest stacks until about half of budget.entries_max are left. The stacks of all lanes
// in use are in `lanes`, and get their new numbers.
enum err stack_pruning_run(struct aggregator *aggregator, const struct stack_slots_vec *lanes)
    MUST_USE;
