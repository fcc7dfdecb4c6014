// SPDX-License-Identifier: MIT
// full_walk: a walk that remembers nothing, by the cached rules, through a memory_reader.
//
// For stacks that are not the thread's own, for stacks too deep to be walk_cache, for the first
// walk of a thread, and as the truth that incremental walks are compared with. At the first frame
// that needs the interpreter it gives up: the registers that this would need were not followed.
// Context: T; async-signal-safe.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "target/unwind/cfi/memory_reader.h"
#include "target/unwind/environment/stack_bounds.h"
#include "target/unwind/unwind.h"
#include "target/unwind/walk/frame_sink.h"
#include "target/unwind/walk/step.h"

enum walk_end {
    WALK_FINISHED = 0,
    WALK_UNFINISHED,
    WALK_COMPLEX, // what was pushed so far is right, but the walk must be done by precise_walk
};

struct full_walk {
    struct memory_reader *memory;
    struct stack_bounds own; // of the thread, or empty: limits the frame-pointer steps inside
    bool used_frame_pointer; // result
    bool rising;             // result: each stack pointer was above the one before
    uint64_t last_sp;        // result: of the outermost frame
};

// Walks from `start` and pushes every frame, `start` first. `walk` holds the inputs and gets the
// results.
enum walk_end
full_walk_run(struct full_walk *walk, const struct unwind_regs *start, struct frame_sink *sink);

// The address below which a frame record of a frame at `sp` must end.
ALWAYS_INLINE uint64_t frame_record_limit(const struct stack_bounds *own, uint64_t sp)
{
    return stack_bounds_hold(own, sp) ? own->top : UINT64_MAX;
}
