// SPDX-License-Identifier: MIT
// exchange16_arch (x86-64): compare and swap of 16 bytes, CMPXCHG16B. Only the first processors of
// this architecture lack it, and none that runs a libc of today's distributions.
// Context: T and H, async-signal-safe.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

struct words16 {
    _Alignas(16) uint64_t low;
    uint64_t high;
};

// If *at is *expected, store `desired` there and return true. Else read *at into *expected.
// A full barrier.
ALWAYS_INLINE bool
arch_exchange16(struct words16 *at, struct words16 *expected, struct words16 desired)
{
    bool is_done;
    __asm__ volatile("lock cmpxchg16b %0"
                     : "+m"(*at), "+a"(expected->low), "+d"(expected->high), "=@ccz"(is_done)
                     : "b"(desired.low), "c"(desired.high)
                     : "memory");
    return is_done;
}
