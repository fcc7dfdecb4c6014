// SPDX-License-Identifier: MIT
// caller_arch (x86-64): the registers of a function's caller after the function returns.
//
// Valid in a function that keeps a frame pointer: rbp points at the caller's saved rbp, above it is
// the return address, and above that the caller's stack after the return (System V psABI 3.2.2).
// Context: T and H; three loads.
#pragma once

#include <stdint.h>

#include "base/compiler.h"

// The start of a walk; see unwind.h.
struct unwind_regs {
    uint64_t pc; // return address: the instruction after the call
    uint64_t sp; // of the caller, after the return
    uint64_t fp; // of the caller
};

// Return the registers of the caller of the function that this is expanded in. Compile that
// function with -fno-omit-frame-pointer.
ALWAYS_INLINE struct unwind_regs unwind_caller_regs(void)
{
    const uint64_t *frame = (const uint64_t *)__builtin_frame_address(0);
    return (struct unwind_regs){
        .pc = frame[1],
        .sp = (uint64_t)(frame + 2),
        .fp = frame[0],
    };
}
