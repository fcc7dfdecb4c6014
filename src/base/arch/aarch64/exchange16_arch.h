// SPDX-License-Identifier: MIT
// exchange16_arch (AArch64): compare and swap of 16 bytes by an exclusive pair, which Armv8.0 has
// (CASP needs 8.1). What is read into *expected after a failure may be halves of two values, so
// only a success says what was there. Context: T and H, async-signal-safe.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

struct words16 {
    _Alignas(16) uint64_t low;
    uint64_t high;
};

// If *at is *expected, store `desired` there and return true. Else read *at into *expected.
// Acquire and release.
ALWAYS_INLINE bool
arch_exchange16(struct words16 *at, struct words16 *expected, struct words16 desired)
{
    uint64_t low;
    uint64_t high;
    uint32_t is_left; // 1: the store did not happen, or there was none
    __asm__ volatile("1:\tldaxp %[low], %[high], %[at]\n\t"
                     "mov %w[left], #1\n\t"
                     "cmp %[low], %[expected_low]\n\t"
                     "ccmp %[high], %[expected_high], #0, eq\n\t"
                     "b.ne 2f\n\t"
                     "stlxp %w[left], %[desired_low], %[desired_high], %[at]\n\t"
                     "cbnz %w[left], 1b\n"
                     "2:"
                     : [low] "=&r"(low), [high] "=&r"(high), [left] "=&r"(is_left), [at] "+Q"(*at)
                     : [expected_low] "r"(expected->low), [expected_high] "r"(expected->high),
                       [desired_low] "r"(desired.low), [desired_high] "r"(desired.high)
                     : "cc", "memory");
    expected->low = low;
    expected->high = high;
    return is_left == 0;
}
