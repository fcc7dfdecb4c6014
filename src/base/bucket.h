// SPDX-License-Identifier: MIT
// bucket: the buckets of histograms.
//
// Bucket 0 holds value 0; values 1..7 have a bucket each; from 8 on, each octave has four buckets
// of equal width. The bucket of UINT64_MAX is the last one. So the mean of any values of one
// bucket, rounded down, is of that bucket too. Context: T and H; pure.
#pragma once

#include <stdint.h>

#define BUCKET_COUNT   252
#define BUCKET_SINGLES 8 // values 0 to 7 have a bucket each
#define BUCKET_OCTAVE  3 // 8 = 1 << 3 begins the first octave that is cut into four

// No branch: it is on the path of each event. Values below 8 take the octave of 4, cut into ones,
// as what they are in it.
static inline uint32_t bucket_of(uint64_t value)
{
    const uint32_t octave = 63 - (uint32_t)__builtin_clzll(value | BUCKET_SINGLES / 2);
    const uint32_t quarter = (uint32_t)(value >> (octave - 2)); // 4 to 7, from 8 on
    return octave * 4 + quarter - BUCKET_SINGLES;
}
