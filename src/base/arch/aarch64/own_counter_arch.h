// SPDX-License-Identifier: MIT
// own_counter_arch (AArch64): adds to a counter that only the calling thread and its signal
// handlers write. A handler in the middle of the exclusive pair makes it repeat.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

ALWAYS_INLINE void arch_own_counter_add(_Atomic uint64_t *counter, uint64_t amount)
{
    // Relaxed: a sum that orders nothing else.
    atomic_fetch_add_explicit(counter, amount, memory_order_relaxed);
}

// Subtract; return whether the counter was less.
ALWAYS_INLINE bool arch_own_counter_subtract(_Atomic uint64_t *counter, uint64_t amount)
{
    return atomic_fetch_sub_explicit(counter, amount, memory_order_relaxed) < amount;
}
