// SPDX-License-Identifier: MIT
// record_arch (AArch64): where a frame record leaves its caller's stack.
//
// A record, the saved x29 and the return address, can be anywhere in its function's frame (AAPCS64
// 6.4.6): compilers put it below the saved registers. So its end is not the caller's sp. But x29
// points at the caller's own record, and the caller's tables say where in its frame that is.
// Context: T and H; pure.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "target/unwind/cfi/rule.h"

#define ARCH_RECORD_IS_INSIDE 1 // of its function's frame

// Return the caller's sp, behind a record that ends at `end`. `fp` is the caller's frame pointer,
// and `rule` is the rule of its pc. A caller without a record, or whose rule needs no sp, begins at
// the end of this one.
ALWAYS_INLINE uint64_t arch_sp_behind_record(uint64_t end, uint64_t fp, uint64_t rule)
{
    enum {
        FRAME_BYTES_MAX = 1 << 15 // so that a rule can have the distance
    };
    const uint64_t form = rule & (RULE_RARE | RULE_CFA_FP | RULE_FP_SAVED);
    const int64_t record = rule_fp_offset(rule); // from the CFA
    const bool has_record = form == RULE_FP_SAVED && rule_ret_offset(rule) == record + 8;
    const uint64_t sp = fp - (uint64_t)record - (uint64_t)rule_cfa_offset(rule);
    return has_record && sp % 16 == 0 && sp - end < FRAME_BYTES_MAX ? sp : end; // wraps around
}
