// SPDX-License-Identifier: MIT
// stub_arch (x86-64): linkers describe the procedure linkage table by CFI; nothing to recognize.
//
// Context: T and H; pure.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "registers_arch.h"

#define ARCH_STUB_INSTRUCTIONS_MAX 0u
#define ARCH_STUB_END              0u
#define ARCH_STUB_RETURN           ARCH_REG_RETURN

ALWAYS_INLINE bool arch_is_in_stub(uint32_t instruction)
{
    (void)instruction;
    return false;
}
