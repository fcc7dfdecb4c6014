// SPDX-License-Identifier: MIT
// random_numbers: numbers that look random and follow from a seed, so that a test that fails fails
// again. Xorshift with 64 bits of state. Context: tests.
#pragma once

#include <stdint.h>

// Returns the next number. *state is the seed at first, and never 0.
static inline uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}
