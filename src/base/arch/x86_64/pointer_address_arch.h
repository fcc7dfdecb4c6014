// SPDX-License-Identifier: MIT
// pointer_address_arch (x86-64): the address that a pointer means. Context: T and H; pure.
#pragma once

#include <stdint.h>

#include "base/compiler.h"

ALWAYS_INLINE uint64_t arch_address_of(const void *pointer)
{
    return (uint64_t)pointer;
}
