// SPDX-License-Identifier: MIT
// strip_arch (AArch64): what a return address in memory is besides an address.
//
// A function compiled with -mbranch-protection signs its return address before it saves it; CFI
// says from where to where (DW_CFA_AARCH64_negate_ra_state). Removing a code that is not there
// changes nothing, so nobody needs to know. Context: T and H; pure; only for this process's stacks.
#pragma once

#include <stdint.h>

#include "base/compiler.h"

// Removes a pointer authentication code. XPACLRI is in the hint space: a no-op on older cores.
ALWAYS_INLINE uint64_t arch_strip(uint64_t ret_addr)
{
    register uint64_t x30 __asm__("x30") = ret_addr;
    __asm__("hint #7" : "+r"(x30));
    return x30;
}
