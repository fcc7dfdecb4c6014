// SPDX-License-Identifier: MIT
// thread_pointer_arch (AArch64): the thread pointer, TPIDR_EL0.
//
// The thread's descriptor ends where the pointer points. So the id's distance from it depends on
// the size of the descriptor, and with that on the version of libc. Two words follow that the ABI
// gives to libc: glibc has the pointer to its table of modules in the first one. Then come the
// thread-local variables. Context: T; one register.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

// Offsets from the thread pointer at which known libcs keep the thread id: glibc 2.41, 2.36, 2.31
// (struct pthread), musl 1.2 (struct pthread). Others are searched for.
#define ARCH_TID_OFFSETS              \
    {                                 \
        -0x650, -0x670, -0x630, -0xa8 \
    }

// Between these offsets a thread's descriptor has its id.
#define ARCH_TID_OFFSET_MIN (-0x800)
#define ARCH_TID_OFFSET_END 0

// An offset where a word never changes: neither libc uses the second word of the ABI.
#define ARCH_TID_OFFSET_NONE 8

ALWAYS_INLINE uint64_t arch_thread_pointer(void)
{
    uint64_t pointer;
    __asm__ volatile("mrs %0, tpidr_el0" : "=r"(pointer));
    return pointer;
}

// Whether libc has set it.
ALWAYS_INLINE bool arch_has_thread_pointer(void)
{
    return arch_thread_pointer() != 0;
}
