// SPDX-License-Identifier: MIT
#include "target/unwind/walk/path_cache.h"

#include <stdatomic.h>
#include <string.h>

void path_cache_forget_all(struct shortcuts *shortcuts)
{
    memset(shortcuts->is_known, 0, sizeof(shortcuts->is_known));
}

// Collect the inputs of the steps, outermost first. False if a path_cache cannot represent them.
static bool describe(struct path_cache *s,
                     const struct walk_cache_state *end,
                     const struct fresh_frame *fresh,
                     uint32_t count)
{
    struct walk_cache_state outer = *end;
    uint32_t at = 0;
    uint32_t return_words = 0;
    for (uint32_t i = count; i > 0; i--) {
        const struct fresh_frame *frame = &fresh[i - 1];
        // Behind a signal's frame a pc differs from the return address that was read.
        if (at > SHORTCUT_WORDS_MAX - REMEMBERED_WORDS_PER_FRAME ||
            (frame->rule & RULE_SIGNAL) != 0) {
            return false;
        }
        return_words |= 1u << at;
        at = walk_cache_append_words(s->words, at, frame, &outer);
        outer.sp = frame->regs.sp;
        outer.fp = frame->regs.fp;
        outer.flags = walk_cache_flags_of(frame->rule, outer.flags);
    }
    s->word_count = (uint8_t)at;
    s->return_words = (uint16_t)return_words;
    s->flags = ((end->flags & REMEMBERED_NEEDS_FP) != 0 ? SHORTCUT_END_NEEDS_FP : 0) |
               ((outer.flags & REMEMBERED_NEEDS_FP) != 0 ? SHORTCUT_NEEDS_FP : 0);
    return true;
}

void path_cache_learn(struct shortcuts *shortcuts,
                      const struct walk_cache *r,
                      uint32_t end,
                      const struct fresh_frame *fresh,
                      uint32_t count,
                      uint64_t name)
{
    if (count > SHORTCUT_WORDS_MAX) {
        return; // the root has changed: the path of the leaf stays
    }
    const uint32_t place = path_cache_place(&fresh[0].regs);
    const uint64_t bit = (uint64_t)1 << place % 64;
    struct path_cache *s = &shortcuts->table[place];
    // A signal handler may leave by longjmp in the middle of this: only complete paths are known.
    shortcuts->is_known[place / 64] &= ~bit;
    atomic_signal_fence(memory_order_seq_cst);
    s->start = fresh[0].regs;
    s->end_sp = r->states[end].sp;
    s->end_fp = r->states[end].fp;
    s->base = r->frames[end].name;
    s->name = name;
    s->index = end;
    if (!describe(s, &r->states[end], fresh, count)) {
        return;
    }
    atomic_signal_fence(memory_order_seq_cst);
    shortcuts->is_known[place / 64] |= bit;
}

uint64_t path_cache_rename(const struct path_cache *path_cache, uint64_t base)
{
    uint64_t name = base;
    for (uint32_t i = 1; i < path_cache->word_count; i++) {
        if ((path_cache->return_words >> i & 1) != 0) {
            name = stack_name(name, arch_strip(path_cache->words[i].value));
        }
    }
    return stack_name(name, path_cache->start.pc);
}
