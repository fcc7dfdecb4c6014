// SPDX-License-Identifier: MIT
// own_counter_arch (x86-64): adds to a counter that only the calling thread and its signal handlers
// write. One instruction without a bus lock: a handler comes before it or after it.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

ALWAYS_INLINE void arch_own_counter_add(_Atomic uint64_t *counter, uint64_t amount)
{
    __asm__ volatile("addq %1, %0" : "+m"(*counter) : "er"(amount) : "cc");
}

// Subtract; return whether the counter was less.
ALWAYS_INLINE bool arch_own_counter_subtract(_Atomic uint64_t *counter, uint64_t amount)
{
    bool was_less;
    __asm__ volatile("subq %2, %0" : "+m"(*counter), "=@ccc"(was_less) : "er"(amount));
    return was_less;
}
