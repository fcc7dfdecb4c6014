// SPDX-License-Identifier: MIT
// remembered: see remembered.h.
#include "unwind/remembered.h"

#include "base/hash.h"
#include "unwind/memory_reader.h"
#include <stdatomic.h>

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
                                      .flags = remembered_flags_of(frame->rule, outer->flags)};
        if (index > 0) {
            word = remembered_append_words(r->words, word, frame, outer);
        }
        outer = &r->states[index];
    }
    r->states[index].first_word = word;
    atomic_signal_fence(memory_order_seq_cst);
    r->count = index;
    return same;
}
