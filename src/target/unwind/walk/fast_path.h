// SPDX-License-Identifier: MIT
// fast_path: unwind_thread_again(), inline for the hooks, and the memory that it looks at.
//
// Most allocations come from where the last one came from, or from a leaf beside it. This is all
// that they cost: is the first frame the one that was walk_cache, and are the words that the rest
// depends on what they were. Whoever includes this reads the words of any stack: it is to be
// compiled without AddressSanitizer. Context: T, as unwind.h.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "target/unwind/environment/rule_cache.h"
#include "target/unwind/environment/stack_bounds.h"
#include "target/unwind/unwind.h"
#include "target/unwind/walk/frame_sink.h"
#include "target/unwind/walk/path_cache.h"
#include "target/unwind/walk/proof.h"
#include "target/unwind/walk/walk_cache.h"

// Frames that unwind_thread_again steps through before it leaves the rest to a walk.
#define UNWIND_AGAIN_STEPS 3u

struct unwind_thread {
    struct stack_bounds bounds;
    uint64_t generation; // of the rule cache, when `walk_cache` was filled
    uint32_t max_frames;
    uint32_t cut_from;     // inner_from of the last result that was a cut walk_cache stack, else 0
    uint32_t changed_from; // of the walk_cache frames, since the last result; UINT32_MAX: none
    struct walk_cache walk_cache;
    struct shortcuts shortcuts;
    uint32_t capacity_max; // what `walk_cache` may grow to
    enum proof_clock clock;
    struct moment proved;            // before this, all that is walk_cache was on the stack
    void *grown;                     // the memory of `walk_cache` if it grew, else NULL
    struct unwind_frame *cut_frames; // the result, while a walk_cache stack is being cut
    struct frame_sink sink;          // the result of full walks
};

// The rest of unwind_again: the first frame is not the walk_cache one, or not all words are intact.
uint64_t unwind_again_by_steps(struct unwind_thread *thread, const struct unwind_regs *start);

// The name of the stack that begins with `start` if it is the very one that was walked last, else
// 0.
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
