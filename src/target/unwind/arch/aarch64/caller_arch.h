// SPDX-License-Identifier: MIT
// caller_arch (AArch64): the registers of a function's caller after the function returns.
//
// Valid in a function that keeps a frame record: x29 points at the caller's x29 and the return
// address (AAPCS64 6.4.6), which may contain a pointer authentication code. The record can be
// anywhere in the frame, so the caller's sp is the compiler's own notion of the CFA. Context: T and
// H.
#pragma once

#include <stdint.h>

#include "base/compiler.h"
#include "strip_arch.h"

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
        .pc = arch_strip(frame[1]),
        .sp = (uint64_t)__builtin_dwarf_cfa(),
        .fp = frame[0],
    };
}
