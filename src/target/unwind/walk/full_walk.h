// SPDX-License-Identifier: MIT
// full_walk: a walk without the remembered one, by the cached rules, through a memory_reader.
//
// For stacks that are not the thread's own, for stacks too deep to be remembered, for the first
// walk of a thread, and as the reference for incremental walks. It stops at the first frame that
// needs the interpreter, because it does not follow the registers that the interpreter would need.
// Context: T; async-signal-safe.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "record_arch.h"
#include "target/unwind/cfi/memory_reader.h"
#include "target/unwind/environment/rule_cache.h"
#include "target/unwind/environment/stack_bounds.h"
#include "target/unwind/unwind.h"
#include "target/unwind/walk/frame_sink.h"
#include "target/unwind/walk/step.h"

enum walk_end {
    WALK_FINISHED = 0,
    WALK_UNFINISHED,
    WALK_COMPLEX, // the pushed frames are right, but precise_walk must do the walk
};

struct full_walk {
    struct memory_reader *memory;
    struct stack_bounds own; // of the thread, or empty: limits the frame-pointer steps inside
    bool used_frame_pointer; // result
    bool rising;             // result: each stack pointer was above the previous one
    uint64_t last_sp;        // result: of the outermost frame
};

// Walk from `start` and push every frame, `start` first. `walk` contains the inputs and receives
// the results.
enum walk_end
full_walk_run(struct full_walk *walk, const struct unwind_regs *start, struct frame_sink *sink);

// Correct the caller's sp after a step over a frame record.
ALWAYS_INLINE void place_behind_record(struct rule_view rules, struct frame_regs *regs)
{
    if (ARCH_RECORD_IS_INSIDE) {
        rules.is_guess = true;
        regs->sp = arch_sp_behind_record(regs->sp, regs->fp, rule_cache_get(rules, regs->pc));
    }
}

// Return the address below which a frame record of a frame at `sp` must end.
ALWAYS_INLINE uint64_t frame_record_limit(const struct stack_bounds *own, uint64_t sp)
{
    return stack_bounds_hold(own, sp) ? own->top : UINT64_MAX;
}
