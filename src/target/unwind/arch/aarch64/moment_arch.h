// SPDX-License-Identifier: MIT
// moment_arch (AArch64): a reading of the clock, to limit a thread's work since an earlier one.
//
// The virtual counter ticks at the rate that CNTFRQ_EL0 states, and is the same on all processors.
// Cores run at less than 8 GHz and complete two calls in a cycle at best. Context: T and H;
// async-signal-safe.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

#define ARCH_CALLS_PER_SECOND 16000000000u

struct moment {
    uint64_t ticks;
    uint32_t processor; // always 0
};

static inline uint64_t arch_ticks_per_second(void)
{
    uint64_t rate;
    __asm__ volatile("mrs %0, cntfrq_el0" : "=r"(rate));
    return rate;
}

// Whether this processor has a suitable clock.
static inline bool arch_has_moments(void)
{
    return arch_ticks_per_second() != 0;
}

// Return the present moment. ISB waits until earlier instructions are done.
ALWAYS_INLINE struct moment arch_moment(void)
{
    uint64_t ticks;
    __asm__ volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(ticks) : : "memory");
    return (struct moment){.ticks = ticks};
}

static inline uint64_t arch_calls_per_tick(void)
{
    return ARCH_CALLS_PER_SECOND / arch_ticks_per_second() + 1;
}
