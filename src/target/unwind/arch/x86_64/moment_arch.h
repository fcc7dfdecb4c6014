// SPDX-License-Identifier: MIT
// moment_arch (x86-64): a reading of the clock, to limit a thread's work since an earlier one.
//
// The time stamp counter ticks at 1 GHz at least; cores run at up to three and a half times its
// rate and complete two calls in a cycle at best. Counters of two processors need not agree: a
// moment carries the number of its processor. Context: T and H; async-signal-safe.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

#define ARCH_CALLS_PER_TICK 8u

struct moment {
    uint64_t ticks;
    uint32_t processor;
};

// Whether this processor has a suitable clock: RDTSCP is CPUID 8000_0001h, EDX bit 27.
static inline bool arch_has_moments(void)
{
    uint32_t eax = 0x80000000u;
    uint32_t ebx;
    uint32_t ecx = 0;
    uint32_t edx;
    __asm__ volatile("cpuid" : "+a"(eax), "=b"(ebx), "+c"(ecx), "=d"(edx));
    if (eax < 0x80000001u) {
        return false;
    }
    eax = 0x80000001u;
    ecx = 0;
    __asm__ volatile("cpuid" : "+a"(eax), "=b"(ebx), "+c"(ecx), "=d"(edx));
    return (edx >> 27 & 1) != 0;
}

// Return the present moment. RDTSCP waits for all earlier instructions.
ALWAYS_INLINE struct moment arch_moment(void)
{
    uint32_t low;
    uint32_t high;
    uint32_t processor;
    __asm__ volatile("rdtscp" : "=a"(low), "=d"(high), "=c"(processor) : : "memory");
    return (struct moment){.ticks = (uint64_t)high << 32 | low, .processor = processor};
}

ALWAYS_INLINE uint64_t arch_calls_per_tick(void)
{
    return ARCH_CALLS_PER_TICK;
}
