// SPDX-License-Identifier: MIT
#include "target/unwind/walk/walk_cache.h"

#include "base/hash.h"
#include "target/unwind/cfi/memory_reader.h"
#include <stdatomic.h>

uint32_t walk_cache_append_rare_words(struct walk_cache_word *words,
                                      uint32_t at,
                                      const struct fresh_frame *frame,
                                      const struct walk_cache_state *outer)
{
    const uint64_t rule = frame->rule;
    const uint64_t base = (rule & RULE_CFA_FP) != 0 ? frame->regs.fp : frame->regs.sp;
    const uint64_t ret_base = (rule & RULE_RET_FROM_BASE) != 0 ? base : outer->sp;
    const uint64_t fp_base = (rule & RULE_FP_FROM_BASE) != 0 ? base : outer->sp;
    const uint64_t ret_slot = ret_base + (uint64_t)rule_ret_offset(rule);
    words[at++] = (struct walk_cache_word){.addr = ret_slot, .value = memory_word(ret_slot)};
    if ((rule & RULE_CFA_DEREF) != 0) {
        words[at++] = (struct walk_cache_word){.addr = base + (uint64_t)rule_cfa_offset(rule),
                                               .value = outer->sp};
    }
    if ((rule & RULE_FP_SAVED) != 0 && (outer->flags & REMEMBERED_NEEDS_FP) != 0) {
        words[at++] = (struct walk_cache_word){.addr = fp_base + (uint64_t)rule_fp_offset(rule),
                                               .value = outer->fp};
    }
    return at;
}

// Write the state of the frame at which a walk ended.
static void
write_outermost(struct walk_cache_state *state, const struct fresh_frame *frame, bool unfinished)
{
    state->sp = frame->regs.sp;
    state->fp = frame->regs.fp;
    state->rule = frame->rule;
    state->first_word = 0;
    state->flags = (unfinished ? REMEMBERED_UNFINISHED : 0) |
                   (rule_uses_fp(frame->rule) ? REMEMBERED_NEEDS_FP : 0);
}

// Write the names of fresh[count - 1], ..., fresh[0], which are further in than the stack `name`,
// over `old_count` frames. Returns how many of the first are unchanged.
static uint32_t write_names(struct unwind_frame *frames,
                            uint32_t old_count,
                            const struct fresh_frame *fresh,
                            uint32_t count,
                            uint64_t name)
{
    uint32_t i = 0;
    for (; i < count && i < old_count; i++) {
        const uint64_t pc = fresh[count - 1 - i].regs.pc;
        const uint64_t next = stack_name(name, pc);
        if (frames[i].name != next) {
            break;
        }
        frames[i].pc = pc;
        name = next;
    }
    const uint32_t same = i;
    for (; i < count; i++) {
        const uint64_t pc = fresh[count - 1 - i].regs.pc;
        name = stack_name(name, pc);
        frames[i] = (struct unwind_frame){.pc = pc, .name = name};
    }
    return same;
}

static void write_tip(struct walk_cache *r)
{
    const struct walk_cache_state *state = &r->states[r->count - 1];
    const struct unwind_frame *frame = &r->frames[r->count - 1];
    struct walk_cache_tip *tip = &r->tip;
    tip->regs.pc = frame->pc;
    tip->regs.fp = state->fp;
    tip->fp_mask = (state->flags & REMEMBERED_NEEDS_FP) != 0 ? UINT64_MAX : 0;
    tip->name = frame->name;
    tip->word_count = state[1].first_word;
    atomic_signal_fence(memory_order_seq_cst);
    tip->regs.sp = state->sp;
}

void walk_cache_forget(struct walk_cache *r)
{
    walk_cache_hide_tip(r);
    r->count = 0;
}

uint32_t walk_cache_replace(struct walk_cache *r,
                            uint32_t kept,
                            const struct fresh_frame *fresh,
                            uint32_t fresh_count,
                            bool unfinished)
{
    const uint32_t old_count = r->count;
    const uint32_t count = kept + fresh_count;
    struct walk_cache_state *state = r->states + kept;
    uint32_t word = state->first_word;
    // A signal handler may leave by longjmp in the middle of this: only complete data counts.
    walk_cache_hide_tip(r);
    r->count = kept;
    atomic_signal_fence(memory_order_seq_cst);
    const uint32_t same = kept + write_names(r->frames + kept, old_count - kept, fresh, fresh_count,
                                             kept > 0 ? r->frames[kept - 1].name : 0);
    const struct fresh_frame *frame = fresh + fresh_count;
    if (kept == 0 && fresh_count > 0) {
        write_outermost(state++, --frame, unfinished);
    }
    while (frame > fresh) {
        const struct walk_cache_state *outer = state - 1;
        frame--;
        state->sp = frame->regs.sp;
        state->fp = frame->regs.fp;
        state->rule = frame->rule;
        state->first_word = word;
        state->flags = walk_cache_flags_of(frame->rule, outer->flags);
        word = walk_cache_append_words(r->words, word, frame, outer);
        state++;
    }
    state->first_word = word;
    atomic_signal_fence(memory_order_seq_cst);
    r->count = count;
    write_tip(r);
    return same;
}
