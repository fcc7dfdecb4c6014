// SPDX-License-Identifier: MIT
// address_space_arch (AArch64): where a process has its memory. Context: H.
#pragma once

#include <stdint.h>

#include "base/compiler.h"
#include "inject/process/target_process.h"

#define ADDRESS_SPACE_REACH UINT64_C(0x7e00000) // 128 MB less 2 MB; whole pages

// Kernels have 39 to 52 bits of addresses. The kernel puts the stack at their end.
ALWAYS_INLINE uint64_t address_space_end(const struct target_process *target)
{
    const struct target_mapping_vec *mappings = &target->mappings;
    return mappings->len > 0 ? mappings->items[mappings->len - 1].end : 0;
}
