// SPDX-License-Identifier: MIT
// capture_arch (AArch64): the registers of the running code, for a walk that begins with it.
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
    uint64_t sp;
    __asm__ volatile("stp x19, x20, [%2, #152]\n\t"
                     "stp x21, x22, [%2, #168]\n\t"
                     "stp x23, x24, [%2, #184]\n\t"
                     "stp x25, x26, [%2, #200]\n\t"
                     "stp x27, x28, [%2, #216]\n\t"
                     "stp x29, x30, [%2, #232]\n\t"
                     "mov %1, sp\n\t"
                     "adr %0, 0f\n"
                     "0:"
                     : "=&r"(pc), "=&r"(sp)
                     : "r"(values)
                     : "memory");
    values[ARCH_REG_SP] = sp;
    return pc;
}
