// SPDX-License-Identifier: MIT
// sampling_level: the levels of sampling. A thread takes a higher one when its ring is fuller, and
// the recorder when its memory is; each level records half as many blocks as the one below.
//
// A block is chosen with the probability 1 / weight, and then stands for `weight` blocks: Horvitz
// and Thompson's estimator, as pprof and jeprof apply it. The weight is a whole number, and follows
// from the size and the interval alone, so a thread that frees a block computes the same as the one
// that allocated it: interval / length, rounded, for a length of size + 1, which makes blocks of 0
// bytes possible. Blocks longer than two thirds of the interval have the weight 1: they are always
// recorded. A chosen block adds weight * (weight - 1) * size^2 <= interval * weight * size to the
// estimate of the variance. That none is chosen of blocks of three intervals has a probability of
// at most exp(-3).
//
// Context: T and H.
#pragma once

#include <stdint.h>

#define LANE_LEVEL_MAX 16u // of sampling; 0: every block is recorded

// Return the interval of a level: one block in about this many allocated bytes is recorded
// (byte_sampler.h); 0: every block is recorded.
static inline uint64_t sampling_interval(uint32_t level)
{
    enum {
        UNIT_BYTES = 64 // about as large as most blocks: level 1 records a third of them
    };
    return level != 0 ? (uint64_t)UNIT_BYTES << level : 0;
}

#define BLOCK_WEIGHT_INTERVAL_MAX ((uint64_t)64 << 20)
#define BLOCK_WEIGHT_MAX          (BLOCK_WEIGHT_INTERVAL_MAX + 1)

// Return the longest length with a weight above 1.
static inline uint64_t block_weight_length(uint64_t interval_bytes)
{
    return 2 * interval_bytes / 3;
}

// Return the weight of a block that was chosen with that interval; 0: of every block.
static inline uint64_t block_weight(uint64_t size_bytes, uint64_t interval_bytes)
{
    const uint64_t length = size_bytes + 1;
    return length < interval_bytes ? (2 * interval_bytes + length) / (2 * length) : 1;
}
