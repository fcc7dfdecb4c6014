// SPDX-License-Identifier: MIT
// sampling_level: how sparsely blocks are sampled when there is no room for all of them, and how
// precisely threads report the live bytes of the other blocks.
//
// Context: T and H.
#pragma once

#include <stdint.h>

#define LANE_LEVEL_MAX      16u   // of sampling; 0: every block is recorded
#define SAMPLER_GRAIN_BYTES 4096u // precision of the unsampled live bytes (wire.h); doubles

// Return the mean distance in bytes of the moments that choose blocks (byte_sampler.h); 0: every
// block is recorded.
static inline uint64_t sampling_interval(uint32_t level)
{
    enum {
        UNIT_BYTES = 64 // about as large as most blocks: level 1 records a third of them
    };
    return level != 0 ? (uint64_t)UNIT_BYTES << level : 0;
}
