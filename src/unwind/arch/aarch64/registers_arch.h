// SPDX-License-Identifier: MIT
// registers_arch (AArch64): DWARF's register numbers (DWARF for the Arm 64-bit Architecture, 4.1)
// and the few facts of the machine that the walk needs.
//
// Context: T and H; pure, but for arch_capture.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "caller_arch.h"

#define ARCH_REG_FP     29u
#define ARCH_REG_SP     31u
#define ARCH_REG_PC     32u // has a number, but no column of its own
#define ARCH_REG_RETURN 30u // the column of the return address
#define ARCH_REG_COUNT  33u

// Registers that keep their value across a call unless CFI says otherwise: x19 to x30.
#define ARCH_CALLEE_SAVED ((uint64_t)0xfff << 19)

// Removes what is not part of an address: a pointer authentication code.
ALWAYS_INLINE uint64_t arch_strip(uint64_t ret_addr)
{
    return unwind_strip_return_address(ret_addr);
}

// Fills `values` (indexed by DWARF number) with the registers of this very place that a callee
// keeps, and returns the place. Expanded in the caller, so that its own CFI describes its frame.
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
