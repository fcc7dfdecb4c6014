// SPDX-License-Identifier: MIT
// minmax: the smaller and the larger of two unsigned numbers, and by how much one is larger.
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

// Return by how much `a` exceeds `b`; 0 if it does not.
static inline uint64_t excess_u64(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}
