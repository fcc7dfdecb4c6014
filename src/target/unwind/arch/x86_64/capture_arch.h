// SPDX-License-Identifier: MIT
// capture_arch (x86-64): the registers of the running code, for a walk that begins with it.
//
// Context: T and H.
#pragma once

#include <stdint.h>

#include "base/compiler.h"
#include "registers_arch.h"

// Fill `values` (indexed by DWARF number) with the callee-saved registers of this place, and return
// its address. Expanded in the caller, so that its own CFI describes its frame.
ALWAYS_INLINE uint64_t arch_capture(uint64_t values[ARCH_REG_COUNT])
{
    uint64_t pc;
    __asm__ volatile("leaq 0f(%%rip), %0\n\t"
                     "movq %%rbx, 24(%1)\n\t"
                     "movq %%rbp, 48(%1)\n\t"
                     "movq %%rsp, 56(%1)\n\t"
                     "movq %%r12, 96(%1)\n\t"
                     "movq %%r13, 104(%1)\n\t"
                     "movq %%r14, 112(%1)\n\t"
                     "movq %%r15, 120(%1)\n"
                     "0:"
                     : "=&a"(pc)
                     : "d"(values)
                     : "memory");
    return pc;
}
