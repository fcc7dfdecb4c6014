// SPDX-License-Identifier: MIT
// minmax: the smaller and the larger of two unsigned numbers, by how much one is larger, by how
// much they differ, a share, a sum that stays at the largest number, and the next whole number.
// Context: T and H; pure.
#pragma once

#include <stdint.h>

static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static inline uint32_t max_u32(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

// Return `count`, but at most `limit`. A limit of 0 means none.
static inline uint64_t limited_u64(uint64_t count, uint64_t limit)
{
    return limit != 0 ? min_u64(count, limit) : count;
}

// Return the next multiple of `step` after `a`: what is due then can share a wake.
static inline uint64_t next_whole_u64(uint64_t a, uint64_t step)
{
    return a - a % step + step;
}

// Return by how much `a` exceeds `b`; 0 if it does not.
static inline uint64_t excess_u64(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

// Return by how much two numbers differ.
static inline uint64_t distance_u64(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

// Return what a part of a whole has of `amount`, rounded down; 0 of an empty whole. The part is at
// most the whole, or the result must fit.
static inline uint64_t share_u64(uint64_t amount, uint64_t part, uint64_t whole)
{
    return whole == 0 ? 0 : (uint64_t)((unsigned __int128)amount * part / whole);
}

// Return a + b, or the largest number if that is larger.
static inline uint64_t capped_sum_u64(uint64_t a, uint64_t b)
{
    return a < UINT64_MAX - b ? a + b : UINT64_MAX;
}
