// SPDX-License-Identifier: MIT
// stamp_arch (AArch64): the processor's clock, read after all earlier instructions.
//
// The virtual counter is the same on all processors. It may be read early unless an ISB comes
// first, and the ISB waits for loads only if a barrier does (Arm ARM, D12.2.1 and D13). Context: T
// and H, async-signal-safe.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

// The kernel's name of a clock source that is the processor's clock, the same on all processors.
#define STAMP_ARCH_CLOCK_SOURCE "arch_sys_counter"

ALWAYS_INLINE uint64_t stamp_arch_read(void)
{
    uint64_t now;
    __asm__ volatile("dsb ishld\n\tisb\n\tmrs %0, cntvct_el0" : "=r"(now) : : "memory");
    return now;
}

// Read the same clock, perhaps a little before earlier instructions are done.
ALWAYS_INLINE uint64_t stamp_arch_read_early(void)
{
    uint64_t now;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(now) : : "memory");
    return now;
}

// Keep later instructions behind a reading: a later load would else be early, because no barrier
// for memory orders the counter.
ALWAYS_INLINE void stamp_arch_settle(void)
{
    __asm__ volatile("isb" : : : "memory");
}

// Before Armv8.6 the counter may tick 25 million times a second. Within one tick one thread can
// free an address and another can get it, with equal stamps.
#define STAMP_ARCH_HZ_MIN UINT64_C(1000000000)

static inline bool stamp_arch_has_clock(void)
{
    uint64_t hz;
    __asm__("mrs %0, cntfrq_el0" : "=r"(hz));
    return hz >= STAMP_ARCH_HZ_MIN;
}
