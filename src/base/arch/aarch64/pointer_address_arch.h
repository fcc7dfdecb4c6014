// SPDX-License-Identifier: MIT
// pointer_address_arch (AArch64): the address that a pointer means. Context: T and H; pure.
#pragma once

#include <stdint.h>

#include "base/compiler.h"

// The processor ignores the highest byte of a program's pointer (TBI). Allocators, memory tags
// (MTE) and sanitizers keep tags there. Two pointers to one block may have different ones.
ALWAYS_INLINE uint64_t arch_address_of(const void *pointer)
{
    return (uint64_t)pointer & UINT64_MAX >> 8;
}
