// SPDX-License-Identifier: MIT
// registers_arch (x86-64): DWARF's register numbers (System V psABI, figure 3.36) and the few facts
// of the machine that the walk needs.
//
// Context: T and H; pure, but for arch_capture.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

#define ARCH_REG_FP     6u
#define ARCH_REG_SP     7u
#define ARCH_REG_PC     16u
#define ARCH_REG_RETURN 16u // the column of the return address
#define ARCH_REG_COUNT  17u

// Registers that keep their value across a call unless CFI says otherwise: rbx, rbp, r12 to r15.
#define ARCH_CALLEE_SAVED ((uint64_t)1 << 3 | 1 << 6 | 0xf << 12)

// Removes what is not part of an address.
ALWAYS_INLINE uint64_t arch_strip(uint64_t ret_addr)
{
    return ret_addr;
}

// Fills `values` (indexed by DWARF number) with the registers of this very place that a callee
// keeps, and returns the place. Expanded in the caller, so that its own CFI describes its frame.
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
