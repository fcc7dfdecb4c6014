// SPDX-License-Identifier: MIT
// registers_arch (AArch64): DWARF's register numbers (DWARF for the Arm 64-bit Architecture, 4.1)
// and what calls keep.
//
// Context: T and H; constants, of use on any machine.
#pragma once

#include <stdint.h>

#define ARCH_REG_FP     29u
#define ARCH_REG_SP     31u
#define ARCH_REG_PC     32u // has a number, but no column of its own
#define ARCH_REG_RETURN 30u // the column of the return address
#define ARCH_REG_COUNT  33u

// Registers that keep their value across a call unless CFI says otherwise: x19 to x30.
#define ARCH_CALLEE_SAVED ((uint64_t)0xfff << 19)
