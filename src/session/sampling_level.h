// SPDX-License-Identifier: MIT
// sampling_level: the levels of sampling. A thread takes a higher one when its ring is fuller, and
// the recorder when its memory is; each level records half as many blocks as the one below.
//
// Context: T and H.
#pragma once

#include <stdint.h>

#define LANE_LEVEL_MAX      16u   // of sampling; 0: every block is recorded
#define SAMPLER_GRAIN_BYTES 4096u // precision of the unsampled live bytes (wire.h); doubles

// Return the interval of a level: one block in about this many allocated bytes is recorded
// (byte_sampler.h); 0: every block is recorded.
static inline uint64_t sampling_interval(uint32_t level)
{
    enum {
        UNIT_BYTES = 64 // about as large as most blocks: level 1 records a third of them
    };
    return level != 0 ? (uint64_t)UNIT_BYTES << level : 0;
}
