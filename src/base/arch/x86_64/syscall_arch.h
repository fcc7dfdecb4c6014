// SPDX-License-Identifier: MIT
// syscall_arch (x86-64): the kernel's calling convention, without libc's errno.
//
// Returns what the kernel returned: a result, or -errno in -4095..-1. Clobbers nothing but what the
// System V psABI (appendix A.2) says: rcx and r11. Context: T and H, async-signal-safe.
#pragma once

#include <stdint.h>

#include "base/compiler.h"

ALWAYS_INLINE long arch_syscall6(long number, long a, long b, long c, long d, long e, long f)
{
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

// Lets a processor wait for a moment, as spinning loops do.
ALWAYS_INLINE void arch_pause(void)
{
    __asm__ volatile("pause" : : : "memory");
}
