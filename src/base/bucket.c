// SPDX-License-Identifier: MIT
// bucket: see the header. Finding a value's highest bit takes a processor longer than this table.
#include "base/bucket.h"

const uint8_t bucket_table[BUCKET_TABLE] = {
    0,
    1,
    2,
    3,
    4,
    5,
    6,
    7,
    [8 ... 9] = 8,
    [10 ... 11] = 9,
    [12 ... 13] = 10,
    [14 ... 15] = 11,
    [16 ... 19] = 12,
    [20 ... 23] = 13,
    [24 ... 27] = 14,
    [28 ... 31] = 15,
    [32 ... 39] = 16,
    [40 ... 47] = 17,
    [48 ... 55] = 18,
    [56 ... 63] = 19,
    [64 ... 79] = 20,
    [80 ... 95] = 21,
    [96 ... 111] = 22,
    [112 ... 127] = 23,
    [128 ... 159] = 24,
    [160 ... 191] = 25,
    [192 ... 223] = 26,
    [224 ... 255] = 27,
};
