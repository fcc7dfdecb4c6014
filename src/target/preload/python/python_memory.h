// SPDX-License-Identifier: MIT
// python_memory: reads an interpreter's structures without the risk of a fault.
//
// A signal handler may see pointers that are half set, so none is trusted. The kernel says once for
// each page whether it can be read; the last pages that can are remembered for the whole process. A
// page that was unmapped since would fault, but only a wrong pointer leads there: the objects of a
// running frame are alive.
//
// Owns: the remembered pages. Context: T; no lock, signal handlers included.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

// Whether [addr, addr + bytes) can be read; `bytes` is not 0.
bool python_memory_holds(uint64_t addr, uint64_t bytes);

// Read a number from memory that python_memory_holds() has checked.
ALWAYS_INLINE uint64_t python_word(uint64_t addr)
{
    uint64_t word;
    __builtin_memcpy(&word, (const void *)addr, sizeof(word));
    return word;
}

ALWAYS_INLINE uint32_t python_half(uint64_t addr)
{
    uint32_t half;
    __builtin_memcpy(&half, (const void *)addr, sizeof(half));
    return half;
}

ALWAYS_INLINE uint8_t python_byte(uint64_t addr)
{
    uint8_t byte;
    __builtin_memcpy(&byte, (const void *)addr, sizeof(byte));
    return byte;
}
