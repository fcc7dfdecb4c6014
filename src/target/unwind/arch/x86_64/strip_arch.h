// SPDX-License-Identifier: MIT
// strip_arch (x86-64): a return address in memory contains only the address.
//
// Context: T and H; pure.
#pragma once

#include <stdint.h>

#include "base/compiler.h"

ALWAYS_INLINE uint64_t arch_strip(uint64_t ret_addr)
{
    return ret_addr;
}
