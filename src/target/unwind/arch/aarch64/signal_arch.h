// SPDX-License-Identifier: MIT
// signal_arch (AArch64): the kernel's frame below a signal handler (arch/arm64/kernel/signal.c:
// struct rt_sigframe, which is a siginfo of 128 bytes and a ucontext).
//
// No table describes it: the vDSO's CFI of Linux before 5.8 omits sp, later ones have none, and
// under qemu-user there is not even a module. Context: T and H; constants.
#pragma once

#include <stdint.h>

#include "base/compiler.h"
#include "registers_arch.h"

// The code that handlers return to, its first 8 bytes: mov x8, #139; svc #0.
#define ARCH_SIGRETURN_CODE 0xd4000001d2801168ULL

// Positions of the registers, in bytes from sp at that code.
#define ARCH_SIGNAL_PC        568
#define ARCH_SIGNAL_REGISTERS ARCH_REG_PC // by DWARF number: x0 to x30, sp

ALWAYS_INLINE int64_t arch_signal_register(unsigned reg)
{
    return 312 + 8 * (int64_t)reg;
}
