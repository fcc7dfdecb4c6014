// SPDX-License-Identifier: MIT
// remembered: see remembered.h.
#include "unwind/remembered.h"

#include "base/hash.h"
#include "unwind/memory_reader.h"
#include <stdatomic.h>

// Where the step by `rule` from `regs` to a frame at `cfa` finds things.
ALWAYS_INLINE uint64_t fp_slot(uint64_t rule, const struct frame_regs *regs, uint64_t cfa)
{
    uint64_t base = (rule & RULE_CFA_FP) != 0 ? regs->fp : regs->sp;
    return ((rule & RULE_FP_FROM_BASE) != 0 ? base : cfa) + (uint64_t)rule_fp_offset(rule);
}

ALWAYS_INLINE uint64_t ret_slot(uint64_t rule, const struct frame_regs *regs, uint64_t cfa)
{
    uint64_t base = (rule & RULE_CFA_FP) != 0 ? regs->fp : regs->sp;
    return ((rule & RULE_RET_FROM_BASE) != 0 ? base : cfa) + (uint64_t)rule_ret_offset(rule);
}

// Appends what the step from `frame` to the outer frame depended on. The return address is loaded
// again, since it may carry more than the pc.
ALWAYS_INLINE uint32_t append_words(struct remembered_word *words,
                                    uint32_t at,
                                    const struct fresh_frame *frame,
                                    const struct remembered_state *outer)
{
    uint64_t rule = frame->rule;
    const struct frame_regs *regs = &frame->regs;
    uint64_t slot = ret_slot(rule, regs, outer->sp);
    words[at++] = (struct remembered_word){.addr = slot, .value = memory_word(slot)};
    if (UNLIKELY((rule & RULE_CFA_DEREF) != 0)) {
        uint64_t base = (rule & RULE_CFA_FP) != 0 ? regs->fp : regs->sp;
        words[at++] = (struct remembered_word){.addr = base + (uint64_t)rule_cfa_offset(rule),
                                               .value = outer->sp};
    }
    if ((rule & RULE_FP_SAVED) != 0 && (outer->flags & REMEMBERED_NEEDS_FP) != 0) {
        words[at++] =
            (struct remembered_word){.addr = fp_slot(rule, regs, outer->sp), .value = outer->fp};
    }
    return at;
}

ALWAYS_INLINE uint32_t state_flags(uint64_t rule, uint32_t outer_flags)
{
    bool passes_fp_on = (rule & RULE_FP_SAVED) == 0;
    bool needs_fp =
        rule_uses_fp(rule) || (passes_fp_on && (outer_flags & REMEMBERED_NEEDS_FP) != 0);
    return (outer_flags & ~(uint32_t)REMEMBERED_NEEDS_FP) | (needs_fp ? REMEMBERED_NEEDS_FP : 0) |
           ((rule & RULE_GUESSED) != 0 ? REMEMBERED_GUESSED : 0);
}

uint32_t remembered_replace(struct remembered *r,
                            uint32_t kept,
                            const struct fresh_frame *fresh,
                            uint32_t fresh_count,
                            bool unfinished)
{
    const struct remembered_state beyond = {.flags = unfinished ? REMEMBERED_UNFINISHED : 0};
    const struct remembered_state *outer = kept > 0 ? &r->states[kept - 1] : &beyond;
    uint64_t name = kept > 0 ? r->frames[kept - 1].name : 0;
    uint32_t word = r->states[kept].first_word;
    uint32_t old_count = r->count;
    uint32_t same = kept;
    uint32_t index = kept;
    // A signal handler may leave by longjmp in the middle of this: only what is whole counts.
    r->count = kept;
    atomic_signal_fence(memory_order_seq_cst);
    for (uint32_t i = fresh_count; i > 0; i--, index++) {
        const struct fresh_frame *frame = &fresh[i - 1];
        name = stack_name(name, frame->regs.pc);
        if (same == index && index < old_count && r->frames[index].name == name) {
            same++;
        }
        r->frames[index] = (struct unwind_frame){.pc = frame->regs.pc, .name = name};
        r->states[index] =
            (struct remembered_state){.sp = frame->regs.sp,
                                      .fp = frame->regs.fp,
                                      .rule = frame->rule,
                                      .first_word = word,
                                      .flags = state_flags(frame->rule, outer->flags)};
        if (index > 0) {
            word = append_words(r->words, word, frame, outer);
        }
        outer = &r->states[index];
    }
    r->states[index].first_word = word;
    atomic_signal_fence(memory_order_seq_cst);
    r->count = index;
    return same;
}
