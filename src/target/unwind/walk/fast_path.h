// SPDX-License-Identifier: MIT
// fast_path: unwind_thread_again(), inline for the hooks, and the memory that it reads.
//
// Most allocations come from the same place as the last one, or from a leaf beside it. Then this
// check suffices: the first frame is the remembered one, and the words that the rest depends on are
// unchanged. The code reads the words of any stack, so compile its includers without
// AddressSanitizer. Context: T, as unwind.h.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "target/unwind/environment/rule_cache.h"
#include "target/unwind/environment/stack_bounds.h"
#include "target/unwind/unwind.h"
#include "target/unwind/walk/frame_sink.h"
#include "target/unwind/walk/mixed_stack.h"
#include "target/unwind/walk/path_cache.h"
#include "target/unwind/walk/proof.h"
#include "target/unwind/walk/walk_cache.h"

// How many frames unwind_thread_again steps through before it leaves the rest to a walk.
#define UNWIND_AGAIN_STEPS 3u

struct unwind_thread {
    struct stack_bounds bounds;
    uint64_t generation; // of the rule cache, when `walk_cache` was filled
    uint32_t max_frames;
    uint32_t changed_from; // of the remembered frames, since the last result; UINT32_MAX: none
    uint32_t mixed_same;   // so many of the first remembered frames are as in the last mix
    struct walk_cache walk_cache;
    struct shortcuts shortcuts;
    uint32_t capacity_max; // upper limit for the growth of `walk_cache`
    enum proof_clock clock;
    struct moment proved;      // before this, all remembered frames were on the stack
    void *grown;               // the memory of `walk_cache` if it grew, else NULL
    struct cut_stack cut;      // the result, if it is a remembered stack that is cut
    struct frame_sink sink;    // the result of full walks
    struct mixed_stack *mixed; // NULL: there was no mix yet
};

// Do the rest of unwind_again: the first frame is not the remembered one, or not all words are
// intact.
uint64_t unwind_again_by_steps(struct unwind_thread *thread, const struct unwind_regs *start);

// Return the name of the stack that begins with `start` if it equals the last walk, else 0.
ALWAYS_INLINE uint64_t unwind_same(const struct unwind_thread *thread,
                                   const struct unwind_regs *start)
{
    const struct walk_cache *r = &thread->walk_cache;
    const struct frame_regs regs = {.pc = start->pc, .sp = start->sp, .fp = start->fp};
    return walk_cache_is_at_tip(r, &regs) &&
                   LIKELY(thread->generation == rule_cache_generation()) &&
                   LIKELY(walk_cache_hold(r->words, r->tip.word_count))
               ? r->tip.name
               : 0;
}

ALWAYS_INLINE uint64_t unwind_again(struct unwind_thread *thread, const struct unwind_regs *start)
{
    const uint64_t same = unwind_same(thread, start);
    return LIKELY(same != 0) ? same : unwind_again_by_steps(thread, start);
}
