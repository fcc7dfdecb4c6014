// SPDX-License-Identifier: MIT
#include "aggregate/peak/byte_weight.h"

#include <math.h>

#include "base/hash.h"

#define RANDOM_MAX 0x1p64

uint32_t byte_weight_shift(uint64_t *random, uint64_t interval_bytes, uint64_t size_bytes)
{
    const double lengths = ((double)size_bytes + 1) / (double)interval_bytes;
    const double blocks = -1 / expm1(-lengths);
    uint32_t shift = 0;
    while (shift < BYTE_WEIGHT_SHIFT_MAX && blocks >= (double)((uint64_t)2 << shift)) {
        shift++;
    }
    *random += 0x9e3779b97f4a7c15ULL; // SplitMix64, as in the sampler
    const double chance = blocks / (double)((uint64_t)1 << shift) - 1; // of the next power of two
    return shift + ((double)hash_mix(*random) < chance * RANDOM_MAX);
}
