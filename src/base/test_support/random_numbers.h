// SPDX-License-Identifier: MIT
// random_numbers: pseudo-random numbers that follow from a seed, so that a failed test can be
// repeated. Xorshift with 64 bits of state. Context: tests.
#pragma once

#include <stdint.h>

// Return the next number. *state is the seed at first, and never 0.
static inline uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}
