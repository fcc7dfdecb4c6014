// SPDX-License-Identifier: MIT
// record_arch (x86-64): where a frame record leaves its caller's stack.
//
// A record, the saved rbp and the return address, is the end of its function's frame: behind it the
// caller's stack begins. Context: T and H; pure.
#pragma once

#include <stdint.h>

#include "base/compiler.h"

#define ARCH_RECORD_IS_INSIDE 0 // of its function's frame

// Return the caller's sp.
ALWAYS_INLINE uint64_t arch_sp_behind_record(uint64_t end, uint64_t fp, uint64_t rule)
{
    (void)fp;
    (void)rule;
    return end;
}
