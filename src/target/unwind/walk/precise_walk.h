// SPDX-License-Identifier: MIT
// precise_walk: a walk with the full register state, which interprets every frame's CFI.
//
// Slow (about half a microsecond a frame) and complete: for the rare stack with a frame whose CFI
// does not fit a compact rule, for stacks of other processes, and as an oracle. It uses neither
// rules nor caches. Where no table covers a frame it follows the frame pointer, as the other walks
// do. Context: T and H; async-signal-safe if its source is.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "target/unwind/cfi/cpu.h"
#include "target/unwind/cfi/eh_frame.h"
#include "target/unwind/cfi/memory_reader.h"
#include "target/unwind/environment/stack_bounds.h"
#include "target/unwind/walk/frame_sink.h"
#include "target/unwind/walk/full_walk.h"

// The inputs of a walk besides registers.
struct unwind_source {
    struct memory_reader *memory;
    // Finds the unwind tables that cover `pc`; false if there are none. For a guessed pc they may
    // be a copy (module_copy.h), which is closed after use.
    bool (*find_table)(const struct unwind_source *self,
                       uint64_t pc,
                       bool is_guess,
                       struct eh_table *out);
    struct stack_bounds own; // as in full_walk
};

// Walk from `cpu` and push every frame, the first one included.
enum walk_end precise_walk_run(const struct unwind_source *source,
                               const struct cpu *cpu,
                               struct frame_sink *sink,
                               bool *used_frame_pointer);

// Walk the calling thread: step from here outwards to the frame of `start`, then push that frame
// and all frames further out. So every register has its true value.
enum walk_end precise_walk_self(const struct stack_bounds *own,
                                const struct unwind_regs *start,
                                struct frame_sink *sink,
                                bool *used_frame_pointer);
