// SPDX-License-Identifier: MIT
// stack_oracle: the stack of the calling thread as an unwinder that is not ours finds it.
//
// libunwind where it is at hand; libgcc's, which C++ exceptions rely on, for machines for which we
// are built without any other library. Context: tests.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// What an oracle finds of a frame.
struct oracle_frame {
    uint64_t pc;
    uint64_t sp;
    bool was_interrupted; // pc is that of an instruction, not a return address
};

extern const char *const stack_oracle_name;

// It steps from a handler by the instructions that the handler returns to, wherever they are.
extern const bool stack_oracle_knows_sigreturn;

// Calls `visit` for each frame from the caller's, or one further in, to the outermost.
// `restorer_pc` is where signal handlers return to, 0 if there are none.
void stack_oracle_walk(uint64_t restorer_pc,
                       void (*visit)(void *context, const struct oracle_frame *frame),
                       void *context);
