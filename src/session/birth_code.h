// SPDX-License-Identifier: MIT
// birth_code: the time slice in which a block was born, as a number of 14 bits that never wraps.
//
//   slices below 1,024       the slice itself
//   each doubling after      512 numbers: the slice without its last bit, its last two, ...
//
// So the number is as exact as the recording, whose slices double in width at 1,024. Later slices
// have larger or equal numbers, and the last number is reached after 2^40 slices, 557 years of 16
// ms. With 12 bits it would be after 17 minutes. Context: T and H; pure.
#pragma once

#include <stdint.h>

#define BIRTH_BITS       14
#define BIRTH_MAX        ((1u << BIRTH_BITS) - 1)
#define BIRTH_STEPS_BITS 9 // of the numbers of a doubling
#define BIRTH_EXACT      ((uint64_t)2 << BIRTH_STEPS_BITS)
#define BIRTH_SLICES     ((uint64_t)1 << 40) // from here on all slices have BIRTH_MAX

static inline uint32_t birth_code(uint64_t slice)
{
    if (slice < BIRTH_EXACT) {
        return (uint32_t)slice;
    }
    if (slice >= BIRTH_SLICES) {
        return BIRTH_MAX;
    }
    const uint32_t shift = 63 - BIRTH_STEPS_BITS - (uint32_t)__builtin_clzll(slice);
    return (shift << BIRTH_STEPS_BITS) + (uint32_t)(slice >> shift);
}

// Return the first slice that has this code.
static inline uint64_t birth_slice(uint32_t code)
{
    if (code < BIRTH_EXACT) {
        return code;
    }
    const uint32_t steps = 1u << BIRTH_STEPS_BITS;
    return (uint64_t)(steps + code % steps) << (code / steps - 1);
}
