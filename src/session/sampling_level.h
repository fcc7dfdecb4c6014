// SPDX-License-Identifier: MIT
// sampling_level: how many blocks of a size one sampled block represents, and how precisely threads
// report the live bytes of the other blocks.
//
// Context: T and H.
#pragma once

#include <stdint.h>

#define LANE_LEVEL_MAX      20u   // of sampling; 0: every block is recorded
#define SAMPLER_GRAIN_BYTES 4096u // precision of the unsampled live bytes (wire.h); doubles

// Return the shift: at `level`, one of 2^shift blocks of size_bytes is recorded.
static inline uint32_t sampler_shift(uint32_t level, uint64_t size_bytes)
{
    enum {
        SMALL_BITS = 6 // up to 127 bytes
    };
    const uint32_t bits = 63 - (uint32_t)__builtin_clzll(size_bytes | 1);
    const uint32_t certain = bits > SMALL_BITS ? bits - SMALL_BITS : 0;
    return level > certain ? level - certain : 0;
}
