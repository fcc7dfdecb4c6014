// SPDX-License-Identifier: MIT
// remembered: the last walk of a thread, in the form that lets the next one prove it unchanged.
//
// Frames are kept outermost first, so that the part that stays the same stays in place:
//
//   index          0       1                    kept        count
//   frames       entry   main   ...                         leaf      what the caller sees
//   states        sp fp rule ...                                      what a step starts from
//   words        [ those that frame 1's step read ][ frame 2's ] ...  what a step depended on
//
// Frame i's step leads to frame i - 1. Its words are words[states[i].first_word ..
// states[i + 1].first_word); states[count] ends the last.
//
// Invariants (docs/design/unwinding.md proves what follows from them):
//   - states[i].sp falls strictly with i, and every word of frame i lies in [states[i].sp, top).
//   - From (pc, sp, fp) of frame i, and if its words hold their values, the step by CFI leads to
//     (pc, sp, fp) of frame i - 1; fp counts only where REMEMBERED_NEEDS_FP is set.
//   - REMEMBERED_NEEDS_FP of frame i: fp there decides about some frame further out.
// Owns: nothing, all of it lies in the memory of an unwind_thread. Context: T, its thread only.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "unwind/memory_reader.h"
#include "unwind/rule.h"
#include "unwind/step.h"
#include "unwind/unwind.h"

enum remembered_flags {
    REMEMBERED_NEEDS_FP = 1 << 0,
    // Of this frame or one further out:
    REMEMBERED_GUESSED = 1 << 1,
    REMEMBERED_UNFINISHED = 1 << 2,
};

struct remembered_state {
    uint64_t sp;
    uint64_t fp;
    uint64_t rule;
    uint32_t first_word;
    uint32_t flags; // enum remembered_flags
};

struct remembered_word {
    uint64_t addr;
    uint64_t value;
};

#define REMEMBERED_WORDS_PER_FRAME 3u // CFA, return address, fp

struct remembered {
    uint32_t count;
    uint32_t capacity;
    struct unwind_frame *frames;
    struct remembered_state *states; // one more than capacity
    struct remembered_word *words;
};

// A frame that a walk has just stepped through, and the rule that led on from it.
struct fresh_frame {
    struct frame_regs regs;
    uint64_t rule;
};

// Where the step by `rule` from `regs` to a frame at `cfa` finds things.
ALWAYS_INLINE uint64_t remembered_fp_slot(uint64_t rule,
                                          const struct frame_regs *regs,
                                          uint64_t cfa)
{
    uint64_t base = (rule & RULE_CFA_FP) != 0 ? regs->fp : regs->sp;
    return ((rule & RULE_FP_FROM_BASE) != 0 ? base : cfa) + (uint64_t)rule_fp_offset(rule);
}

ALWAYS_INLINE uint64_t remembered_return_slot(uint64_t rule,
                                              const struct frame_regs *regs,
                                              uint64_t cfa)
{
    uint64_t base = (rule & RULE_CFA_FP) != 0 ? regs->fp : regs->sp;
    return ((rule & RULE_RET_FROM_BASE) != 0 ? base : cfa) + (uint64_t)rule_ret_offset(rule);
}

// Appends what the step from `frame` to the outer frame depended on. The return address is loaded
// again, since it may carry more than the pc.
ALWAYS_INLINE uint32_t remembered_append_words(struct remembered_word *words,
                                               uint32_t at,
                                               const struct fresh_frame *frame,
                                               const struct remembered_state *outer)
{
    uint64_t rule = frame->rule;
    const struct frame_regs *regs = &frame->regs;
    uint64_t slot = remembered_return_slot(rule, regs, outer->sp);
    words[at++] = (struct remembered_word){.addr = slot, .value = memory_word(slot)};
    if (UNLIKELY((rule & RULE_CFA_DEREF) != 0)) {
        uint64_t base = (rule & RULE_CFA_FP) != 0 ? regs->fp : regs->sp;
        words[at++] = (struct remembered_word){.addr = base + (uint64_t)rule_cfa_offset(rule),
                                               .value = outer->sp};
    }
    if ((rule & RULE_FP_SAVED) != 0 && (outer->flags & REMEMBERED_NEEDS_FP) != 0) {
        words[at++] = (struct remembered_word){.addr = remembered_fp_slot(rule, regs, outer->sp),
                                               .value = outer->fp};
    }
    return at;
}

ALWAYS_INLINE uint32_t remembered_flags_of(uint64_t rule, uint32_t outer_flags)
{
    bool passes_fp_on = (rule & RULE_FP_SAVED) == 0;
    bool needs_fp =
        rule_uses_fp(rule) || (passes_fp_on && (outer_flags & REMEMBERED_NEEDS_FP) != 0);
    return (outer_flags & ~(uint32_t)REMEMBERED_NEEDS_FP) | (needs_fp ? REMEMBERED_NEEDS_FP : 0) |
           ((rule & RULE_GUESSED) != 0 ? REMEMBERED_GUESSED : 0);
}

// The bits in which `count` words, read back, differ from what they were.
ALWAYS_INLINE uint64_t remembered_difference(const struct remembered_word *word, uint32_t count)
{
    uint64_t difference = 0;
#pragma GCC unroll 8
    for (uint32_t i = 0; i < count; i++) {
        difference |= memory_word(word[i].addr) ^ word[i].value;
    }
    return difference;
}

// Reads back the words of frames [0, known), outermost first, and returns how many are intact up to
// the first that is not. Few branches: eight words at a time, then those that are left over by the
// binary digits of their number.
ALWAYS_INLINE uint32_t remembered_read_back(const struct remembered *r, uint32_t known)
{
    const struct remembered_word *word = r->words;
    const uint32_t count = known > 0 ? r->states[known].first_word : 0;
    const struct remembered_word *const end = word + count;
    for (uint32_t left = count / 8; left > 0; left--) {
        if (UNLIKELY(remembered_difference(word, 8) != 0)) {
            break;
        }
        word += 8;
    }
    if (LIKELY(end - word < 8)) {
        if ((count & 4) != 0 && LIKELY(remembered_difference(word, 4) == 0)) {
            word += 4;
        }
        if ((count & 2) != 0 && LIKELY(remembered_difference(word, 2) == 0)) {
            word += 2;
        }
    }
    while (word < end && memory_word(word->addr) == word->value) {
        word++;
    }
    return (uint32_t)(word - r->words);
}

// True if a walk that has come to `regs` is in remembered frame `index`.
ALWAYS_INLINE bool
remembered_is_at(const struct remembered *r, uint32_t index, const struct frame_regs *regs)
{
    const struct remembered_state *state = &r->states[index];
    // Bitwise, so that this is one branch, which is taken once in a walk.
    return (state->sp == regs->sp) & (r->frames[index].pc == regs->pc) &
           ((state->fp == regs->fp) | ((state->flags & REMEMBERED_NEEDS_FP) == 0));
}

// As remembered_is_at, and if the steps from
// there outwards, of which `intact_words` were read back and found intact, are proved.
ALWAYS_INLINE bool remembered_proves(const struct remembered *r,
                                     uint32_t index,
                                     const struct frame_regs *regs,
                                     uint32_t intact_words)
{
    return remembered_is_at(r, index, regs) & (r->states[index + 1].first_word <= intact_words);
}

// Replaces the frames from `kept` on by fresh[fresh_count - 1], ..., fresh[0]. They must fit. If
// `kept` is 0, the outermost fresh frame has a stopping rule, and `unfinished` says whether that
// was the thread's entry. Returns the first index at which the stack differs from what it was.
uint32_t remembered_replace(struct remembered *r,
                            uint32_t kept,
                            const struct fresh_frame *fresh,
                            uint32_t fresh_count,
                            bool unfinished);
