// SPDX-License-Identifier: MIT
// walk_cache: the last walk of a thread, in a form that lets the next walk prove it unchanged.
//
// Frames are kept outermost first, so that the part that stays the same stays in place:
//
//   index          0       1                    kept        count
//   frames       entry   main   ...                         leaf      the result for the caller
//   states        sp fp rule ...                                      the start of each step
//   words        [ read by frame 1's step ][ frame 2's ] ...  the inputs of each step
//
// Frame i's step leads to frame i - 1. Its words are words[states[i].first_word ..
// states[i + 1].first_word); states[count] ends the last.
//
// Invariants (docs/design/unwinding.md proves their consequences):
//   - states[i].sp falls strictly with i, and every word of frame i is in [states[i].sp, top).
//   - From (pc, sp, fp) of frame i, and if its words hold their values, the step by CFI leads to
//     (pc, sp, fp) of frame i - 1; fp counts only where REMEMBERED_NEEDS_FP is set.
//   - REMEMBERED_NEEDS_FP of frame i: fp there determines some frame further out.
// Owns: nothing; all of it is in the memory of an unwind_thread. Context: T, its thread only.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "record_arch.h"
#include "target/unwind/cfi/memory_reader.h"
#include "target/unwind/cfi/rule.h"
#include "target/unwind/unwind.h"
#include "target/unwind/walk/step.h"

enum walk_cache_flags {
    REMEMBERED_NEEDS_FP = 1 << 0,
    // Of this frame or a frame further out:
    REMEMBERED_GUESSED = 1 << 1,
    REMEMBERED_UNFINISHED = 1 << 2,
};

struct walk_cache_state {
    uint64_t sp;
    uint64_t fp;
    uint64_t rule;
    uint32_t first_word;
    uint32_t flags; // enum walk_cache_flags
};

struct walk_cache_word {
    uint64_t addr;
    uint64_t value;
};

#define REMEMBERED_WORDS_PER_FRAME 3u // CFA, return address, fp

// A copy of the innermost frame: the data that a walk from the same place needs, side by side.
struct walk_cache_tip {
    struct frame_regs regs; // REMEMBERED_NOWHERE in sp: none
    uint64_t fp_mask;       // the bits of fp that count: all or none
    uint64_t name;
    uint32_t word_count; // of all frames
};

#define REMEMBERED_NOWHERE UINT64_MAX // a stack pointer that means "none"

// A frame that a walk has just stepped through, and the rule of that step.
struct fresh_frame {
    struct frame_regs regs;
    uint64_t rule;
};

struct walk_cache {
    struct walk_cache_tip tip;
    uint32_t count;
    uint32_t capacity;
    struct unwind_frame *frames;
    struct walk_cache_state *states; // one more than capacity
    struct walk_cache_word *words;
    struct fresh_frame *fresh; // room for `capacity` frames that a walk has just stepped through
};

// Do walk_cache_append_words for rules with a RULE_RARE flag.
uint32_t walk_cache_append_rare_words(struct walk_cache_word *words,
                                      uint32_t at,
                                      const struct fresh_frame *frame,
                                      const struct walk_cache_state *outer);

// Append the inputs of the step from `frame` to the outer frame. The return address is loaded
// again, since it may contain more than the pc.
ALWAYS_INLINE uint32_t walk_cache_append_words(struct walk_cache_word *words,
                                               uint32_t at,
                                               const struct fresh_frame *frame,
                                               const struct walk_cache_state *outer)
{
    const uint64_t rule = frame->rule;
    if (UNLIKELY((rule & RULE_RARE) != 0)) {
        return walk_cache_append_rare_words(words, at, frame, outer);
    }
    const uint64_t ret_slot = outer->sp + (uint64_t)rule_ret_offset(rule);
    words[at++] = (struct walk_cache_word){.addr = ret_slot, .value = memory_word(ret_slot)};
    // Where a record is inside a frame, fp has determined the outer frame's sp.
    const bool needs_fp = (outer->flags & REMEMBERED_NEEDS_FP) != 0 ||
                          (ARCH_RECORD_IS_INSIDE && (rule & RULE_GUESSED) != 0);
    if (UNLIKELY((rule & RULE_FP_SAVED) != 0 && needs_fp)) {
        words[at++] = (struct walk_cache_word){.addr = outer->sp + (uint64_t)rule_fp_offset(rule),
                                               .value = outer->fp};
    }
    return at;
}

// Return the flags of a frame with `rule`, which leads to a frame with `outer_flags`.
ALWAYS_INLINE uint32_t walk_cache_flags_of(uint64_t rule, uint32_t outer_flags)
{
    // Shifts bits instead of branching: the processor cannot predict which functions save fp.
    _Static_assert((int)RULE_CFA_FP == REMEMBERED_NEEDS_FP, "one bit means the other");
    _Static_assert((int)RULE_FP_SAVED >> 2 == REMEMBERED_NEEDS_FP, "two bits lower");
    _Static_assert((int)RULE_GUESSED >> 6 == REMEMBERED_GUESSED, "six bits lower");
    const uint32_t bits = (uint32_t)rule;
    return (outer_flags & ~(bits >> 2 & REMEMBERED_NEEDS_FP)) | (bits & REMEMBERED_NEEDS_FP) |
           (bits >> 6 & REMEMBERED_GUESSED);
}

// Return the bits in which `count` words, read back, differ from their remembered values.
ALWAYS_INLINE uint64_t walk_cache_difference(const struct walk_cache_word *word, uint32_t count)
{
    uint64_t difference = 0;
#pragma GCC unroll 8
    for (uint32_t i = 0; i < count; i++) {
        difference |= memory_word(word[i].addr) ^ word[i].value;
    }
    return difference;
}

// Whether `count` words have their remembered values. Reads four at a time, the last four whatever
// the count, so some may be read twice: unpredictable branches cost more than a few words.
ALWAYS_INLINE bool walk_cache_hold(const struct walk_cache_word *word, uint32_t count)
{
    if (UNLIKELY(count < 4)) {
        while (count > 0 && memory_word(word[count - 1].addr) == word[count - 1].value) {
            count--;
        }
        return count == 0;
    }
    const struct walk_cache_word *const last = word + (count - 4);
    for (; word < last; word += 4) {
        if (UNLIKELY(walk_cache_difference(word, 4) != 0)) {
            return false;
        }
    }
    return walk_cache_difference(last, 4) == 0;
}

// Read back the words of frames [from, known), outermost first. Returns the index of the first
// frame that is not intact, or `known`.
ALWAYS_INLINE uint32_t walk_cache_read_back(const struct walk_cache *r,
                                            uint32_t from,
                                            uint32_t known)
{
    const uint32_t end = known > 0 ? r->states[known].first_word : 0;
    uint32_t intact = from > 0 ? r->states[from].first_word : 0;
    while (end - intact >= 4 && walk_cache_difference(r->words + intact, 4) == 0) {
        intact += 4;
    }
    while (intact < end && memory_word(r->words[intact].addr) == r->words[intact].value) {
        intact++;
    }
    return intact;
}

// Whether a walk that begins with `regs` begins in the innermost remembered frame.
ALWAYS_INLINE bool walk_cache_is_at_tip(const struct walk_cache *r, const struct frame_regs *regs)
{
    const struct walk_cache_tip *tip = &r->tip;
    return ((tip->regs.pc ^ regs->pc) | (tip->regs.sp ^ regs->sp) |
            ((tip->regs.fp ^ regs->fp) & tip->fp_mask)) == 0;
}

// Whether a walk that has reached `regs` is in the remembered frame `index`.
ALWAYS_INLINE bool
walk_cache_is_at(const struct walk_cache *r, uint32_t index, const struct frame_regs *regs)
{
    const struct walk_cache_state *state = &r->states[index];
    // Bitwise, so that this is one branch, which is taken once in a walk.
    return (state->sp == regs->sp) & (r->frames[index].pc == regs->pc) &
           ((state->fp == regs->fp) | ((state->flags & REMEMBERED_NEEDS_FP) == 0));
}

// Return how many of the first `known` frames are at `sp` or further out.
ALWAYS_INLINE uint32_t walk_cache_from_sp(const struct walk_cache *r, uint32_t known, uint64_t sp)
{
    while (known > 0 && r->states[known - 1].sp < sp) {
        known--;
    }
    return known;
}

// Return how many of the first `known` frames are intact with all frames from `from` on: their
// words were read back and are unchanged. At least `from`.
ALWAYS_INLINE uint32_t walk_cache_intact_from(const struct walk_cache *r,
                                              uint32_t from,
                                              uint32_t known)
{
    const uint32_t intact_words = walk_cache_read_back(r, from, known);
    while (known > from && r->states[known].first_word > intact_words) {
        known--;
    }
    return known;
}

void walk_cache_forget(struct walk_cache *r);

// Hide the tip: until the next remembered walk, walk_cache_is_at_tip is false.
ALWAYS_INLINE void walk_cache_hide_tip(struct walk_cache *r)
{
    r->tip.regs.sp = REMEMBERED_NOWHERE;
}

// Replace the frames from `kept` on by fresh[fresh_count - 1], ..., fresh[0]. They must fit. If
// `kept` is 0, the outermost fresh frame has a stopping rule, and `unfinished` is false if that was
// the thread's entry. Returns the first index at which the stack has changed.
uint32_t walk_cache_replace(struct walk_cache *r,
                            uint32_t kept,
                            const struct fresh_frame *fresh,
                            uint32_t fresh_count,
                            bool unfinished);
