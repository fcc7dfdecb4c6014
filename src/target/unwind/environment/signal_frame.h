// SPDX-License-Identifier: MIT
// signal_frame: the step from a signal handler to what it interrupted, where no table says it.
//
// A handler returns to a few instructions that ask the kernel to restore all registers. Debuggers
// recognize them by their bytes, and so do we; the registers lie at fixed distances from sp then
// (signal_arch.h). Context: T and H; async-signal-safe if the reader is.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "target/unwind/cfi/cpu.h"
#include "target/unwind/cfi/memory_reader.h"

// True if the instructions at `pc`, itself no return address of a call, are those.
bool signal_frame_begins(struct memory_reader *memory, uint64_t pc);

// The step as a compact rule.
uint64_t signal_frame_rule(void);

// True if `pc`, itself no return address, is in a stub that jumps on to another function, of which
// no table says anything. Only a handler that interrupted it can lead there.
bool signal_frame_is_in_stub(struct memory_reader *memory, uint64_t pc);

// The step from such a stub. ERR_UNSUPPORTED: the register with the return address is not known.
MUST_USE enum err signal_frame_step_from_stub(struct cpu *cpu);

// The step with all registers. ERR_IO: memory cannot be read, `cpu` is as it was.
MUST_USE enum err signal_frame_step(struct memory_reader *memory, struct cpu *cpu);
