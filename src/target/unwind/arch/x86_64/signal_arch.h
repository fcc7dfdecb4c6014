// SPDX-License-Identifier: MIT
// signal_arch (x86-64): the kernel's frame below a signal handler (arch/x86/include/asm/sigframe.h:
// struct rt_sigframe, whose ucontext is at sp once the handler has returned).
//
// libc's CFI describes libc's own return code; this is for runtimes that bring another. Context: T
// and H; constants.
#pragma once

#include <stdint.h>

#include "base/compiler.h"
#include "registers_arch.h"

// The code that handlers return to, its first 8 bytes: mov $15, %rax; syscall.
#define ARCH_SIGRETURN_CODE 0x0f0000000fc0c748ULL

// Positions of the registers, in bytes from sp at that code.
#define ARCH_SIGNAL_PC        168
#define ARCH_SIGNAL_REGISTERS ARCH_REG_PC // by DWARF number: rax to r15

ALWAYS_INLINE int64_t arch_signal_register(unsigned reg)
{
    static const uint8_t places[ARCH_SIGNAL_REGISTERS] = {144, 136, 152, 128, 112, 104, 120, 160,
                                                          40,  48,  56,  64,  72,  80,  88,  96};
    return places[reg];
}
