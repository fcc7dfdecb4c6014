// SPDX-License-Identifier: MIT
// stack_oracle: the stack of the calling thread according to another unwinder.
//
// libunwind where it is available; libgcc's, which C++ exceptions rely on, on machines for which no
// other library is installed. Context: tests.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// A frame in an oracle's result.
struct oracle_frame {
    uint64_t pc;
    uint64_t sp;
    bool was_interrupted; // pc is an instruction's address, not a return address
};

extern const char *const stack_oracle_name;

// Whether the oracle steps from a handler by the instructions that the handler returns to, wherever
// they are.
extern const bool stack_oracle_knows_sigreturn;

// Call `visit` for each frame from the caller's, or one further in, to the outermost. `restorer_pc`
// is the address that signal handlers return to, 0 if there are none.
void stack_oracle_walk(uint64_t restorer_pc,
                       void (*visit)(void *context, const struct oracle_frame *frame),
                       void *context);
