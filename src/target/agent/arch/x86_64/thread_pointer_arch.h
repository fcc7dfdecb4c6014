// SPDX-License-Identifier: MIT
// thread_pointer_arch (x86-64): the thread pointer, as glibc and musl store it at its own address.
//
// Context: T; one load.
#pragma once

#include <asm/prctl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "base/compiler.h"
#include "base/sys.h"

// Offsets from the thread pointer at which known libcs keep the thread id: glibc 2.11 and later
// (struct pthread), musl 1.2 (struct pthread).
#define ARCH_TID_OFFSETS \
    {                    \
        0x2d0, 0x30      \
    }

// Between these offsets a thread's descriptor has its id.
#define ARCH_TID_OFFSET_MIN 8
#define ARCH_TID_OFFSET_END 0x400

// An offset where a word never changes: the upper half of the pointer to itself.
#define ARCH_TID_OFFSET_NONE 4

ALWAYS_INLINE uint64_t arch_thread_pointer(void)
{
    uint64_t pointer;
    __asm__ volatile("movq %%fs:0, %0" : "=r"(pointer));
    return pointer;
}

// Whether libc has set it; else there is nothing to load.
ALWAYS_INLINE bool arch_has_thread_pointer(void)
{
    uint64_t pointer = 0;
    return !sys_failed(SYS_CALL(SYS_arch_prctl, ARCH_GET_FS, (long)&pointer)) && pointer != 0;
}
