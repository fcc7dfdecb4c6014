// SPDX-License-Identifier: MIT
// minmax: the smaller and the larger of two unsigned numbers. Context: T and H; pure.
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
