// SPDX-License-Identifier: MIT
// stamp_arch (x86-64): the processor's clock, read after all earlier instructions.
//
// RDTSCP waits until earlier instructions have executed and earlier loads have their values (Intel
// SDM volume 2B, AMD64 APM volume 3). So an allocator's lock was taken, and a pointer was received,
// before the clock is read. Later instructions may begin early; that is harmless, because stores
// become visible in order. Context: T and H, async-signal-safe.
#pragma once

#include <cpuid.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

#define STAMP_ARCH_CPUID_FEATURES 0x80000001u
#define STAMP_ARCH_CPUID_RDTSCP   (1u << 27) // in EDX

// The kernel's name of a clock source that is the processor's clock, the same on all processors.
#define STAMP_ARCH_CLOCK_SOURCE "tsc"

ALWAYS_INLINE uint64_t stamp_arch_read(void)
{
    uint32_t low;
    uint32_t high;
    uint32_t processor;
    __asm__ volatile("rdtscp" : "=a"(low), "=d"(high), "=c"(processor) : : "memory");
    return (uint64_t)high << 32 | low;
}

// Keep later instructions behind a reading (Intel SDM, RDTSCP).
ALWAYS_INLINE void stamp_arch_settle(void)
{
    __asm__ volatile("lfence" : : : "memory");
}

// Read the same clock, perhaps a little before earlier instructions are done. Any processor has it.
ALWAYS_INLINE uint64_t stamp_arch_read_early(void)
{
    return __builtin_ia32_rdtsc();
}

static inline bool stamp_arch_has_clock(void)
{
    uint32_t a;
    uint32_t b;
    uint32_t c;
    uint32_t d;
    return __get_cpuid(STAMP_ARCH_CPUID_FEATURES, &a, &b, &c, &d) != 0 &&
           (d & STAMP_ARCH_CPUID_RDTSCP) != 0;
}
