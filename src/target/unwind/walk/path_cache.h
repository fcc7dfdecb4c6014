// SPDX-License-Identifier: MIT
// path_cache: from a place where a walk began straight to a frame that is walk_cache.
//
// A program allocates from the same places again and again, at the same depth, by turns. Each turn
// changes a few frames next to the leaf, and to step through them again costs a rule for each, one
// after the other. A path_cache is what such steps amounted to:
//
//   start pc sp fp --- words that the steps read ---> end sp fp, a frame of the walk_cache walk
//
// It is taken if the walk begins in the same state, all words hold the same values, and the frame
// that is walk_cache now is the one in which it ended; the rest is proved as always, by reading
// back the words further out. All loads are independent of each other: nothing waits for a rule.
//
// A table for each thread, direct-mapped by pc and sp; one that is taken over by another place is
// learned again by the next steps.
//
// Invariant: if SHORTCUT.is_known, then from the start state, if the words hold their values, the
// steps by CFI lead to the end state; fp counts only where it is needed (walk_cache.h). All words
// lie in the thread's own stack, at or above the start's sp. Owns: nothing, it lies in the memory
// of an unwind_thread. Context: T, its thread only.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/hash.h"
#include "target/unwind/walk/step.h"
#include "target/unwind/walk/walk_cache.h"

#define SHORTCUT_COUNT_LOG2 8u
#define SHORTCUT_COUNT      (1u << SHORTCUT_COUNT_LOG2)
#define SHORTCUT_WORDS_MAX  12u

struct path_cache {
    struct frame_regs start;
    uint64_t end_sp;
    uint64_t end_fp;
    uint64_t base; // name of the frame that it ended at
    uint64_t name; // of the stack
    uint32_t index;
    uint8_t word_count;
    uint8_t flags;         // enum path_cache_flags
    uint16_t return_words; // bit i: word i is a return address
    // Outermost first: the first is the return address into the frame that it ends at.
    struct walk_cache_word words[SHORTCUT_WORDS_MAX];
};
_Static_assert(sizeof(struct path_cache) == 256, "four lines of the cache, of which most need two");

enum path_cache_flags {
    SHORTCUT_NEEDS_FP = 1 << 0,     // the start's fp counts
    SHORTCUT_END_NEEDS_FP = 1 << 1, // and that of the end
};

struct shortcuts {
    uint64_t is_known[SHORTCUT_COUNT / 64];
    uint32_t stepped[SHORTCUT_COUNT]; // names of the stacks that were last stepped through
    struct path_cache *table;         // SHORTCUT_COUNT of them
};

ALWAYS_INLINE uint32_t path_cache_place(const struct frame_regs *start)
{
    const uint64_t mixed = (start->pc ^ start->sp << 28) * 0x9e3779b97f4a7c15ULL;
    return (uint32_t)(mixed >> (64 - SHORTCUT_COUNT_LOG2));
}

// True if the stack `name` was what was stepped through last from a start at this place, too: most
// ways are gone once, and to keep one costs as much as to go it.
ALWAYS_INLINE bool
path_cache_is_worth(struct shortcuts *shortcuts, const struct frame_regs *start, uint64_t name)
{
    uint32_t *stepped = &shortcuts->stepped[path_cache_place(start)];
    const bool is_same = *stepped == (uint32_t)name;
    *stepped = (uint32_t)name;
    return is_same;
}

// Learns the way through fresh[0], ..., fresh[count - 1], count > 0, to the walk_cache frame
// r->frames[end]; `name` is that of the whole stack, which is not cut.
void path_cache_learn(struct shortcuts *shortcuts,
                      const struct walk_cache *r,
                      uint32_t end,
                      const struct fresh_frame *fresh,
                      uint32_t count,
                      uint64_t name);

void path_cache_forget_all(struct shortcuts *shortcuts);

// The name of the stack if it does not end at the frame that it ended at.
uint64_t path_cache_rename(const struct path_cache *path_cache, uint64_t base);

ALWAYS_INLINE bool path_cache_begins_at(const struct path_cache *s, const struct frame_regs *start)
{
    return (s->start.pc == start->pc) & (s->start.sp == start->sp) &
           ((s->start.fp == start->fp) | ((s->flags & SHORTCUT_NEEDS_FP) == 0));
}

// Whether it ends at a frame that is walk_cache now.
ALWAYS_INLINE bool path_cache_ends_in(const struct path_cache *s, const struct walk_cache *r)
{
    const struct walk_cache_state *state = &r->states[s->index];
    const bool needs_fp = (s->flags & SHORTCUT_END_NEEDS_FP) != 0;
    return (s->index < r->count) & (state->sp == s->end_sp) &
           (r->frames[s->index].pc == arch_strip(s->words[0].value)) &
           (((state->flags & REMEMBERED_NEEDS_FP) != 0) == needs_fp) &
           ((state->fp == s->end_fp) | !needs_fp);
}

// The name of the stack that begins with `start`, or 0 if no path_cache proves it. The start's sp
// lies in the thread's own stack.
ALWAYS_INLINE uint64_t path_cache_take(const struct shortcuts *shortcuts,
                                       const struct walk_cache *r,
                                       const struct frame_regs *start)
{
    const uint32_t place = path_cache_place(start);
    const struct path_cache *s = &shortcuts->table[place];
    if ((shortcuts->is_known[place / 64] >> place % 64 & 1) == 0 ||
        !path_cache_begins_at(s, start) || !walk_cache_hold(s->words, s->word_count) ||
        !path_cache_ends_in(s, r) ||
        UNLIKELY(!walk_cache_hold(r->words, r->states[s->index + 1].first_word))) {
        return 0;
    }
    const uint64_t base = r->frames[s->index].name;
    return LIKELY(base == s->base) ? s->name : path_cache_rename(s, base);
}
