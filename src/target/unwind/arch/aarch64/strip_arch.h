// SPDX-License-Identifier: MIT
// strip_arch (AArch64): removes the authentication code from a return address in memory.
//
// A function compiled with -mbranch-protection signs its return address before it saves it; CFI
// marks the range (DW_CFA_AARCH64_negate_ra_state). Removing a missing code changes nothing, so
// callers need not know. Context: T and H; pure; only for this process's stacks.
#pragma once

#include <stdint.h>

#include "base/compiler.h"

// Remove a pointer authentication code. XPACLRI is in the hint space: a no-op on older cores.
ALWAYS_INLINE uint64_t arch_strip(uint64_t ret_addr)
{
    register uint64_t x30 __asm__("x30") = ret_addr;
    __asm__("hint #7" : "+r"(x30));
    return x30;
}
