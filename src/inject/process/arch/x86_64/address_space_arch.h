// SPDX-License-Identifier: MIT
// address_space_arch (x86-64): where a process has its memory. Context: H.
#pragma once

#include <stdint.h>

#include "base/compiler.h"
#include "inject/process/target_process.h"

#define ADDRESS_SPACE_REACH UINT64_C(0x7fe00000) // 2 GB less 2 MB; whole pages

// The lower half with 4-level page tables.
ALWAYS_INLINE uint64_t address_space_end(const struct target_process *target)
{
    (void)target; // the same for all
    return UINT64_C(0x7ffff0000000);
}
