// SPDX-License-Identifier: MIT
// rule: how to step from one frame to its caller, in 64 bits.
//
//   63            36 35        22 21         8 7     0
//  +----------------+------------+------------+-------+
//  | CFA offset     | fp slot    | ret slot   | flags |     offsets signed, in 8-byte words
//  +----------------+------------+------------+-------+
//
//   base   = CFA_FP ? fp : sp
//   cfa    = base + CFA offset;  CFA_DEREF: cfa = *(base + CFA offset)
//   pc'    = *((RET_FROM_BASE ? base : cfa) + ret slot)        SIGNAL: plus 1, see unwind.h
//   fp'    = FP_SAVED ? *((FP_FROM_BASE ? base : cfa) + fp slot) : fp
//   sp'    = cfa
//
// With STOP set there is no such step, and the offset field contains an enum rule_stop. This form
// covers everything that compilers emit for code that calls. CFA_DEREF with FP_FROM_BASE is gcc's
// realigned frame; with RET_FROM_BASE too it is the kernel's signal frame. The PLT's expression
// depends on the pc alone and becomes a plain offset. A rule is never 0. Context: T and H; pure.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

enum rule_flags {
    RULE_CFA_FP = 1 << 0,
    RULE_CFA_DEREF = 1 << 1,
    RULE_FP_SAVED = 1 << 2,
    RULE_FP_FROM_BASE = 1 << 3,
    RULE_RET_FROM_BASE = 1 << 4,
    RULE_SIGNAL = 1 << 5,
    RULE_STOP = 1 << 6,
    RULE_GUESSED = 1 << 7, // not by CFI: the frame pointer was followed; only in remembered frames
};

// Rules with any of these flags are stepped outside of the inner loop.
#define RULE_RARE \
    (RULE_CFA_DEREF | RULE_FP_FROM_BASE | RULE_RET_FROM_BASE | RULE_SIGNAL | RULE_STOP)

enum rule_stop {
    RULE_LAST = 1,     // the return address is undefined: the thread's entry
    RULE_NO_TABLE = 2, // no CFI covers the pc: follow the frame pointer
    RULE_COMPLEX = 3,  // CFI that only the interpreter can follow (precise_walk.h)
    RULE_BROKEN = 4,   // CFI that contradicts itself
    RULE_ENTRY = 5,    // the last frame, too: put there by hand, see eh_begins_function()
};

ALWAYS_INLINE int64_t rule_cfa_offset(uint64_t rule)
{
    return ((int64_t)rule >> 36) * 8;
}

ALWAYS_INLINE int64_t rule_fp_offset(uint64_t rule)
{
    return ((int64_t)(rule << 28) >> 50) * 8;
}

ALWAYS_INLINE int64_t rule_ret_offset(uint64_t rule)
{
    return ((int64_t)(rule << 42) >> 50) * 8;
}

ALWAYS_INLINE enum rule_stop rule_stop_reason(uint64_t rule)
{
    return (enum rule_stop)(rule >> 36);
}

static inline uint64_t rule_stopping(enum rule_stop reason)
{
    return (uint64_t)reason << 36 | RULE_STOP;
}

static inline bool rule_field_fits(int64_t offset_bytes, unsigned bits)
{
    int64_t limit = (int64_t)8 << (bits - 1);
    return offset_bytes % 8 == 0 && offset_bytes >= -limit && offset_bytes < limit;
}

// Build a rule. RULE_COMPLEX if an offset does not fit.
static inline uint64_t rule_of(uint32_t flags, int64_t cfa, int64_t fp_slot, int64_t ret_slot)
{
    if (!rule_field_fits(cfa, 28) || !rule_field_fits(fp_slot, 14) ||
        !rule_field_fits(ret_slot, 14)) {
        return rule_stopping(RULE_COMPLEX);
    }
    uint64_t rule = (uint64_t)(cfa / 8) << 36 | ((uint64_t)(fp_slot / 8) & 0x3fff) << 22 |
                    ((uint64_t)(ret_slot / 8) & 0x3fff) << 8 | flags;
    return rule != 0 ? rule : rule_stopping(RULE_COMPLEX);
}

// Whether the step may lead to a pc that is not the return address of a call: the frame pointer was
// followed, or a handler interrupted code whose tables need not be right at that instruction.
ALWAYS_INLINE bool rule_leads_to_guesses(uint64_t rule)
{
    return (rule & (RULE_GUESSED | RULE_SIGNAL)) != 0 || rule == rule_stopping(RULE_NO_TABLE);
}

// Whether the step, up to its stop, depends on fp.
ALWAYS_INLINE bool rule_uses_fp(uint64_t rule)
{
    return (rule & RULE_CFA_FP) != 0 || rule == rule_stopping(RULE_NO_TABLE);
}
