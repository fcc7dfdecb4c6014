// SPDX-License-Identifier: MIT
// path_cache: leads from the start of a walk directly to a remembered frame.
//
// A program allocates again and again from the same places, at the same depth, by turns. Each turn
// changes a few frames next to the leaf, and stepping through them costs one rule after the other.
// A path_cache entry is the combined effect of such steps:
//
//   start pc sp fp --- words that the steps read ---> end sp fp, a frame of the remembered walk
//
// An entry applies if the walk begins in the same state, all words have the same values, and its
// end frame is the frame remembered now; the rest is proved as usual, by reading back the words
// further out. All loads are independent of each other: no load waits for a rule.
//
// Each thread has a table, direct-mapped by pc and sp. A path that another one replaced is learned
// again by the next steps.
//
// Invariant: if SHORTCUT.is_known, then from the start state, if the words have their values, the
// steps by CFI lead to the end state; fp counts only where it is needed (walk_cache.h). All words
// are in the thread's own stack, at or above the start's sp. Owns: nothing; all of it is in the
// memory of an unwind_thread. Context: T, its thread only.
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
    uint64_t base; // name of the end frame
    uint64_t name; // name of the stack
    uint32_t index;
    uint8_t word_count;
    uint8_t flags;         // enum path_cache_flags
    uint16_t return_words; // bit i: word i is a return address
    // Outermost first: words[0] is the return address into the end frame.
    struct walk_cache_word words[SHORTCUT_WORDS_MAX];
};
_Static_assert(sizeof(struct path_cache) == 256, "four cache lines; most uses touch two");

enum path_cache_flags {
    SHORTCUT_NEEDS_FP = 1 << 0,     // the start's fp counts
    SHORTCUT_END_NEEDS_FP = 1 << 1, // the end's fp counts
};

struct shortcuts {
    uint64_t is_known[SHORTCUT_COUNT / 64];
    uint32_t stepped[SHORTCUT_COUNT]; // names of the last stacks stepped through
    struct path_cache *table;         // SHORTCUT_COUNT of them
};

ALWAYS_INLINE uint32_t path_cache_place(const struct frame_regs *start)
{
    const uint64_t mixed = (start->pc ^ start->sp << 28) * 0x9e3779b97f4a7c15ULL;
    return (uint32_t)(mixed >> (64 - SHORTCUT_COUNT_LOG2));
}

// Whether the last stack stepped through from a start at this place was `name`, too. Most paths are
// walked once, and learning one costs as much as walking it.
ALWAYS_INLINE bool
path_cache_is_worth(struct shortcuts *shortcuts, const struct frame_regs *start, uint64_t name)
{
    uint32_t *stepped = &shortcuts->stepped[path_cache_place(start)];
    const bool is_same = *stepped == (uint32_t)name;
    *stepped = (uint32_t)name;
    return is_same;
}

// Learn the path through fresh[0], ..., fresh[count - 1], count > 0, to the remembered frame
// r->frames[end]. `name` is the name of the whole stack, which is not cut.
void path_cache_learn(struct shortcuts *shortcuts,
                      const struct walk_cache *r,
                      uint32_t end,
                      const struct fresh_frame *fresh,
                      uint32_t count,
                      uint64_t name);

void path_cache_forget_all(struct shortcuts *shortcuts);

// Return the name of the stack if the path ends at a frame of another name, `base`.
uint64_t path_cache_rename(const struct path_cache *path_cache, uint64_t base);

ALWAYS_INLINE bool path_cache_begins_at(const struct path_cache *s, const struct frame_regs *start)
{
    return (s->start.pc == start->pc) & (s->start.sp == start->sp) &
           ((s->start.fp == start->fp) | ((s->flags & SHORTCUT_NEEDS_FP) == 0));
}

// Whether the path ends at a frame that is remembered now.
ALWAYS_INLINE bool path_cache_ends_in(const struct path_cache *s, const struct walk_cache *r)
{
    const struct walk_cache_state *state = &r->states[s->index];
    const bool needs_fp = (s->flags & SHORTCUT_END_NEEDS_FP) != 0;
    return (s->index < r->count) & (state->sp == s->end_sp) &
           (r->frames[s->index].pc == arch_strip(s->words[0].value)) &
           (((state->flags & REMEMBERED_NEEDS_FP) != 0) == needs_fp) &
           ((state->fp == s->end_fp) | !needs_fp);
}

// Return the name of the stack that begins with `start`, or 0 if no path_cache proves it. The
// start's sp is in the thread's own stack.
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
