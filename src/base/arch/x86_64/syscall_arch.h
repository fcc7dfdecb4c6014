// SPDX-License-Identifier: MIT
// syscall_arch (x86-64): the kernel's calling convention, without libc's errno.
//
// Returns the kernel's result, or -errno in -4095..-1. Clobbers only rcx and r11, as the System V
// psABI (appendix A.2) states. Context: T and H, async-signal-safe.
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

// Make a processor wait for a moment, for spinning loops.
ALWAYS_INLINE void arch_pause(void)
{
    __asm__ volatile("pause" : : : "memory");
}
