// SPDX-License-Identifier: MIT
// caller_arch (AArch64, agent): the registers of a patched function's caller after it returns.
//
// An entry of the agent (agent_entries.c) saves the registers in a struct agent_call, points x29 at
// it and calls a C function, whose frame record begins with that x29. So the C function finds the
// agent_call by its own frame. target/unwind/arch has this file for the preload library.
// Context: T.
#pragma once

#include <stdint.h>

#include "base/compiler.h"

// The start of a walk; see unwind.h.
struct unwind_regs {
    uint64_t pc; // return address: the instruction after the call
    uint64_t sp; // of the caller, after the return
    uint64_t fp; // of the caller
};

#define AGENT_ARGUMENTS_MAX 8u

// What an entry saves, lowest address first. It begins with the entry's frame record.
struct agent_call {
    uint64_t fp;                             // x29 of the caller
    uint64_t return_address;                 // x30: no function has signed it yet
    uint64_t arguments[AGENT_ARGUMENTS_MAX]; // x0 to x7
    uint64_t temporaries[8];                 // x8 to x15
    uint64_t flags;                          // NZCV
    uint64_t patch;                          // index; in x17 from the stub
};

// Return the registers of the patched function's caller. Compile the function that this is expanded
// in with -fno-omit-frame-pointer, and call it from an entry only.
ALWAYS_INLINE struct unwind_regs unwind_caller_regs(void)
{
    const uint64_t *frame = (const uint64_t *)__builtin_frame_address(0);
    const struct agent_call *call = (const struct agent_call *)frame[0];
    return (struct unwind_regs){
        .pc = call->return_address,
        .sp = (uint64_t)(call + 1),
        .fp = call->fp,
    };
}
