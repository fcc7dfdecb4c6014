// SPDX-License-Identifier: MIT
// signal_frame: steps from a signal handler to the interrupted code, where no table describes it.
//
// A handler returns to a few instructions that ask the kernel to restore all registers. This code
// recognizes them by their bytes, as debuggers do; the registers are then at fixed distances from
// sp (signal_arch.h). Context: T and H; async-signal-safe if the reader is.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "target/unwind/cfi/cpu.h"
#include "target/unwind/cfi/memory_reader.h"

// Whether these instructions are at `pc`, which is not the return address of a call.
bool signal_frame_begins(struct memory_reader *memory, uint64_t pc);

// Return the step as a compact rule.
uint64_t signal_frame_rule(void);

// Whether `pc`, which is not a return address, is in a stub without tables that jumps on to another
// function. Only a handler that interrupted the stub can lead there.
bool signal_frame_is_in_stub(struct memory_reader *memory, uint64_t pc);

// Step out of such a stub. ERR_UNSUPPORTED: the register with the return address is unknown.
MUST_USE enum err signal_frame_step_from_stub(struct cpu *cpu);

// Step with all registers. ERR_IO: memory cannot be read, and `cpu` is unchanged.
MUST_USE enum err signal_frame_step(struct memory_reader *memory, struct cpu *cpu);
