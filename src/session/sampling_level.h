// SPDX-License-Identifier: MIT
// sampling_level: how many blocks of a size one sampled block stands for, and how finely threads
// say what of the others is alive.
//
// Context: T and H.
#pragma once

#include <stdint.h>

#define LANE_LEVEL_MAX      20u   // of sampling; 0: every block is recorded
#define SAMPLER_GRAIN_BYTES 4096u // of what is said of blocks that were left out (wire.h); doubles

// At `level`, one of 2^result blocks of size_bytes is recorded.
static inline uint32_t sampler_shift(uint32_t level, uint64_t size_bytes)
{
    enum {
        SMALL_BITS = 6 // up to 127 bytes
    };
    const uint32_t bits = 63 - (uint32_t)__builtin_clzll(size_bytes | 1);
    const uint32_t certain = bits > SMALL_BITS ? bits - SMALL_BITS : 0;
    return level > certain ? level - certain : 0;
}
