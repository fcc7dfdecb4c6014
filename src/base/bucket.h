// SPDX-License-Identifier: MIT
// bucket: the buckets of histograms.
//
// Bucket 0 contains value 0; values 1..7 have a bucket each; from 8 on, each octave has four
// buckets of equal width. The bucket of UINT64_MAX is the last one. So the mean of any values of
// one bucket, rounded down, is in that bucket too. Context: T and H; pure.
#pragma once

#include <stdint.h>

#define BUCKET_COUNT   252
#define BUCKET_SINGLES 8 // values 0 to 7 have a bucket each
#define BUCKET_OCTAVE  3 // 8 = 1 << 3 begins the first octave that is cut into four

#define BUCKET_TABLE 256 // smaller values, which most sizes and lifetimes are, are looked up

extern const uint8_t bucket_table[BUCKET_TABLE];

static inline uint32_t bucket_of(uint64_t value)
{
    if (value < BUCKET_TABLE) {
        return bucket_table[value];
    }
    const uint32_t octave = 63 - (uint32_t)__builtin_clzll(value);
    const uint32_t quarter = (uint32_t)(value >> (octave - 2)) & 3;
    return BUCKET_SINGLES + (octave - BUCKET_OCTAVE) * 4 + quarter;
}
