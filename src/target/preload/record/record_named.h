// SPDX-License-Identifier: MIT
// record_named: events whose stacks end with a name from the program (name_frames.h): blocks of
// named pools, and ad-hoc events.
//
// Context: T, called without the guard held. errno is kept. In a handler that interrupted a hook, a
// block is recorded without its name, and an ad-hoc event is lost.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "target/unwind/unwind.h"

// Record as record_alloc and record_realloc do (record.h), with the frame at `name_pc` as the leaf.
void record_named_alloc(const struct unwind_regs *caller,
                        uint64_t name_pc,
                        const void *block,
                        size_t size_bytes);
void record_named_realloc(const struct unwind_regs *caller,
                          uint64_t name_pc,
                          const void *old_block,
                          const void *block,
                          size_t size_bytes);

// Record an ad-hoc event of that name.
void record_named_event(const struct unwind_regs *caller, uint64_t name_pc, uint64_t weight);
