// SPDX-License-Identifier: MIT
// step: steps from one frame to its caller by a compact rule.
//
// Only this file interprets a rule. It is expanded twice: into the walk of the thread's own stack,
// where a load is a bounds check, and into the walk that reads through a memory_reader. Context: T
// and H.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "session/wire.h"
#include "strip_arch.h"
#include "target/unwind/cfi/rule.h"

// The registers of a frame that a compact rule needs. pc is to be looked up at pc - 1.
struct frame_regs {
    uint64_t pc;
    uint64_t sp;
    uint64_t fp;
};

enum step_result {
    STEP_OK = 0,
    STEP_LAST,       // this frame is the thread's entry
    STEP_UNFINISHED, // the caller cannot be found, whatever the memory contains
    // The results from here on cannot be remembered.
    STEP_COMPLEX,    // only the interpreter can continue
    STEP_UNREADABLE, // the memory for the step is missing or has unsuitable contents
    STEP_TOO_DEEP,   // there are more frames than the room for them
};

// A frame of code without tables is followed only if its frame record is plausible: aligned, not
// below sp, within reach, inside the stack, with a return address in user space.
#define FRAME_RECORD_REACH_BYTES ((uint64_t)1 << 20)
#define FRAME_RECORD_BYTES       16u
#define USER_ADDR_MIN            ((uint64_t)1 << 16)

// A guessed frame can have any number as its return address. No code is at an address that the wire
// cannot contain: the recorder would know the frame by another name than the thread.
#define CODE_ADDR_MAX ((uint64_t)1 << WIRE_OFFSET_BITS)

// Whether a walk may continue at `pc`; 0 ends every stack.
ALWAYS_INLINE bool step_may_be_code(uint64_t pc)
{
    return pc - 1 < CODE_ADDR_MAX - 1;
}

// Return the rule by which such a frame is remembered: the rule of a function with a frame pointer,
// whose caller's sp is so far from the record.
static inline uint64_t rule_frame_pointer(uint64_t distance)
{
    const int64_t record = -(int64_t)distance;
    return rule_of(RULE_CFA_FP | RULE_FP_SAVED | RULE_GUESSED, (int64_t)distance, record,
                   record + 8);
}

// Step over a frame record. The caller's sp is the record's end: see arch_sp_behind_record().
ALWAYS_INLINE enum step_result step_frame_pointer(struct frame_regs *regs,
                                                  uint64_t stack_top,
                                                  bool (*load)(void *, uint64_t, uint64_t *),
                                                  void *context)
{
    uint64_t record = regs->fp;
    uint64_t caller_fp = 0;
    uint64_t ret_addr = 0;
    if (record % 8 != 0 || record < regs->sp || record - regs->sp > FRAME_RECORD_REACH_BYTES ||
        record > stack_top - FRAME_RECORD_BYTES) {
        return STEP_UNFINISHED;
    }
    if (!load(context, record, &caller_fp) || !load(context, record + 8, &ret_addr)) {
        return STEP_UNREADABLE;
    }
    ret_addr = arch_strip(ret_addr);
    if (ret_addr < USER_ADDR_MIN || !step_may_be_code(ret_addr)) {
        return STEP_UNREADABLE;
    }
    *regs = (struct frame_regs){.pc = ret_addr, .sp = record + FRAME_RECORD_BYTES, .fp = caller_fp};
    return STEP_OK;
}

// Step by a rule without RULE_STOP. On failure `regs` is unchanged.
ALWAYS_INLINE enum step_result step_rule(uint64_t rule,
                                         struct frame_regs *regs,
                                         bool (*load)(void *, uint64_t, uint64_t *),
                                         void *context)
{
    uint64_t base = (rule & RULE_CFA_FP) != 0 ? regs->fp : regs->sp;
    uint64_t cfa = base + (uint64_t)rule_cfa_offset(rule);
    if ((rule & RULE_CFA_DEREF) != 0 && !load(context, cfa, &cfa)) {
        return STEP_UNREADABLE;
    }
    uint64_t ret_base = (rule & RULE_RET_FROM_BASE) != 0 ? base : cfa;
    uint64_t fp_base = (rule & RULE_FP_FROM_BASE) != 0 ? base : cfa;
    uint64_t ret_addr = 0;
    uint64_t fp = regs->fp;
    if (!load(context, ret_base + (uint64_t)rule_ret_offset(rule), &ret_addr) ||
        ((rule & RULE_FP_SAVED) != 0 &&
         !load(context, fp_base + (uint64_t)rule_fp_offset(rule), &fp))) {
        return STEP_UNREADABLE;
    }
    uint64_t after = (rule & RULE_SIGNAL) != 0 ? 1 : 0;
    *regs = (struct frame_regs){.pc = arch_strip(ret_addr) + after, .sp = cfa, .fp = fp};
    return STEP_OK;
}
