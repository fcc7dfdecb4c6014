// SPDX-License-Identifier: MIT
// memory_reader: the interface of walks to a stack that is not their own, or not trusted.
//
// An implementation embeds this struct as its first member. Context: as the implementation.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

// Read a word that is known to be readable, whatever its alignment and type.
ALWAYS_INLINE uint64_t memory_word(uint64_t addr)
{
    uint64_t word;
    __builtin_memcpy(&word, (const void *)addr, sizeof(word));
    return word;
}

struct memory_reader {
    // Reads 8 bytes at `addr`, in the machine's byte order. False if they cannot be read.
    bool (*read)(struct memory_reader *self, uint64_t addr, uint64_t *word);
    bool is_guess; // set by a walk: the memory of later reads may be unmapped at any moment
};
