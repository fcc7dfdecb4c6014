// SPDX-License-Identifier: MIT
// syscall_arch (AArch64): the kernel's calling convention, without libc's errno.
//
// Returns the kernel's result, or -errno in -4095..-1. The kernel preserves every register but x0.
// Context: T and H, async-signal-safe.
#pragma once

#include <stdint.h>

#include "base/compiler.h"

ALWAYS_INLINE long arch_syscall6(long number, long a, long b, long c, long d, long e, long f)
{
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc #0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    return x0;
}

// Make a processor wait for a moment, for spinning loops.
ALWAYS_INLINE void arch_pause(void)
{
    __asm__ volatile("yield" : : : "memory");
}
