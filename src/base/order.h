// SPDX-License-Identifier: MIT
// order: how the comparison of a sort orders two numbers. T and H; pure.
//
// The first difference decides:
//   return order_u64(b->bytes, a->bytes) ?: order_u64(a->id, b->id);    largest first, then by id
#pragma once

#include <stdint.h>

// Return a negative number, 0 or a positive one: a < b, a == b, a > b.
static inline int order_u64(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}
