// SPDX-License-Identifier: MIT
// registers_arch (x86-64): DWARF's register numbers (System V psABI, figure 3.36) and what
// calls keep.
//
// Context: T and H; constants, of use on any machine.
#pragma once

#include <stdint.h>

#define ARCH_REG_FP     6u
#define ARCH_REG_SP     7u
#define ARCH_REG_PC     16u
#define ARCH_REG_RETURN 16u // the column of the return address
#define ARCH_REG_COUNT  17u

// Registers that keep their value across a call unless CFI says otherwise: rbx, rbp, r12 to r15.
#define ARCH_CALLEE_SAVED ((uint64_t)1 << 3 | 1 << 6 | 0xf << 12)
