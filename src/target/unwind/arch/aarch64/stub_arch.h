// SPDX-License-Identifier: MIT
// stub_arch (AArch64): the stubs of the procedure linkage table. Linkers write no tables for them,
// so the unwinder recognizes an interrupted stub by its instructions.
//
// Context: T and H; pure.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

#define ARCH_STUB_INSTRUCTIONS_MAX 5u
#define ARCH_STUB_END              0xd61f0220u // br x17

// The register that contains the return address throughout; sp is the caller's.
#define ARCH_STUB_RETURN 30u

// Whether this is an instruction of a stub before its end: adrp x16; ldr x17, [x16, ...]; add x16,
// x16, ...; with branch target identification after a bti c.
ALWAYS_INLINE bool arch_is_in_stub(uint32_t instruction)
{
    return (instruction & 0x9f00001f) == 0x90000010 || (instruction & 0xffc003ff) == 0xf9400211 ||
           (instruction & 0xffc003ff) == 0x91000210 || instruction == 0xd503245f;
}
