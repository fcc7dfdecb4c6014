// SPDX-License-Identifier: MIT
// Reads words back: in each number of words, each word may be the changed one.
#include "target/unwind/walk/walk_cache.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#define WORDS 21u // two rounds of eight, one of four, and one

static void each_word_counts(void **state)
{
    (void)state;
    uint64_t memory[WORDS];
    struct walk_cache_word words[WORDS];
    struct walk_cache_state states[2] = {0};
    const struct walk_cache r = {.states = states, .words = words};
    for (uint32_t i = 0; i < WORDS; i++) {
        memory[i] = 1000 + i;
        // Backwards, like stacks.
        words[i] = (struct walk_cache_word){.addr = (uint64_t)(uintptr_t)&memory[WORDS - 1 - i],
                                            .value = 1000 + WORDS - 1 - i};
    }
    for (uint32_t count = 0; count <= WORDS; count++) {
        states[1].first_word = count;
        assert_true(walk_cache_hold(words, count));
        assert_int_equal(walk_cache_read_back(&r, 0, 1), count);
        for (uint32_t changed = 0; changed < WORDS; changed++) {
            memory[WORDS - 1 - changed] ^= (uint64_t)1 << (changed * 3);
            assert_int_equal(walk_cache_hold(words, count), changed >= count);
            assert_int_equal(walk_cache_read_back(&r, 0, 1), changed < count ? changed : count);
            memory[WORDS - 1 - changed] ^= (uint64_t)1 << (changed * 3);
        }
    }
    assert_int_equal(walk_cache_read_back(&r, 0, 0), 0);
}

// One frame, at which the walk ended: by a rule that uses fp, or one that does not.
static void the_tip_is_the_innermost_frame(void **state)
{
    (void)state;
    for (unsigned uses_fp = 0; uses_fp < 2; uses_fp++) {
        struct unwind_frame frames[1];
        struct walk_cache_state states[2] = {0};
        struct walk_cache r = {.capacity = 1, .frames = frames, .states = states};
        const enum rule_stop reason = uses_fp != 0 ? RULE_NO_TABLE : RULE_LAST;
        const struct fresh_frame fresh = {.regs = {.pc = 0x1000, .sp = 0x2000, .fp = 0x3000},
                                          .rule = rule_stopping(reason)};
        walk_cache_forget(&r);
        assert_false(walk_cache_is_at_tip(&r, &fresh.regs));
        assert_int_equal(walk_cache_replace(&r, 0, &fresh, 1, uses_fp != 0), 0);
        assert_true(walk_cache_is_at_tip(&r, &fresh.regs));
        assert_int_equal(r.tip.name, frames[0].name);
        struct frame_regs other = fresh.regs;
        other.pc++;
        assert_false(walk_cache_is_at_tip(&r, &other));
        other = fresh.regs;
        other.sp += 8;
        assert_false(walk_cache_is_at_tip(&r, &other));
        other = fresh.regs;
        other.fp++;
        assert_int_equal(walk_cache_is_at_tip(&r, &other), uses_fp == 0);
        walk_cache_forget(&r);
        assert_false(walk_cache_is_at_tip(&r, &fresh.regs));
    }
}

// A rule with rare flags reads its words at these offsets from the base, which is sp or fp, or from
// the CFA. Each must be remembered; else a change of it is not seen.
static void rare_rules_remember_every_word_that_they_read(void **state)
{
    (void)state;
    enum {
        CFA_AT = 16,
        FP_AT = -24,
        RET_AT = -8
    };
    enum place {
        NOWHERE,
        SP,
        FP,
        CFA
    };
    const struct {
        uint32_t flags;
        uint32_t outer_flags;
        enum place ret;
        enum place deref;
        enum place fp;
    } cases[] = {
        {RULE_SIGNAL, 0, CFA, NOWHERE, NOWHERE},
        {RULE_SIGNAL | RULE_FP_SAVED, REMEMBERED_NEEDS_FP, CFA, NOWHERE, CFA},
        {RULE_SIGNAL | RULE_FP_SAVED, 0, CFA, NOWHERE, NOWHERE}, // fp is not needed
        {RULE_SIGNAL, REMEMBERED_NEEDS_FP, CFA, NOWHERE, NOWHERE},
        {RULE_CFA_DEREF, 0, CFA, SP, NOWHERE},
        {RULE_CFA_DEREF | RULE_CFA_FP, 0, CFA, FP, NOWHERE},
        {RULE_CFA_DEREF | RULE_CFA_FP | RULE_FP_SAVED | RULE_FP_FROM_BASE, REMEMBERED_NEEDS_FP, CFA,
         FP, FP},
        {RULE_CFA_DEREF | RULE_FP_SAVED | RULE_FP_FROM_BASE, REMEMBERED_NEEDS_FP, CFA, SP, SP},
        {RULE_CFA_DEREF | RULE_FP_SAVED, REMEMBERED_NEEDS_FP, CFA, SP, CFA},
        {RULE_CFA_DEREF | RULE_FP_SAVED | RULE_FP_FROM_BASE | RULE_RET_FROM_BASE | RULE_SIGNAL,
         REMEMBERED_NEEDS_FP, SP, SP, SP},
        {RULE_CFA_FP | RULE_RET_FROM_BASE, 0, FP, NOWHERE, NOWHERE},
    };
    uint64_t memory[64];
    const uint64_t base = (uint64_t)(uintptr_t)memory;
    for (size_t i = 0; i < sizeof(memory) / sizeof(memory[0]); i++) {
        memory[i] = 7000 + i;
    }
    const uint64_t from[] = {[SP] = base + 80, [FP] = base + 240, [CFA] = base + 400};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct fresh_frame frame = {.regs = {.pc = 0x1000, .sp = from[SP], .fp = from[FP]},
                                          .rule = rule_of(cases[i].flags, CFA_AT, FP_AT, RET_AT)};
        const struct walk_cache_state outer = {
            .sp = from[CFA], .fp = 0x5555, .flags = cases[i].outer_flags};
        const struct walk_cache_word want[] = {
            {from[cases[i].ret] + (uint64_t)RET_AT,
             memory_word(from[cases[i].ret] + (uint64_t)RET_AT)},
            {from[cases[i].deref] + CFA_AT, from[CFA]},
            {from[cases[i].fp] + (uint64_t)FP_AT, 0x5555},
        };
        const bool is_wanted[] = {true, cases[i].deref != NOWHERE, cases[i].fp != NOWHERE};
        struct walk_cache_word words[4] = {{0}};
        const uint32_t end = walk_cache_append_rare_words(words, 1, &frame, &outer);
        uint32_t at = 1;
        for (size_t k = 0; k < 3; k++) {
            if (is_wanted[k]) {
                assert_int_equal(words[at].addr, want[k].addr);
                assert_int_equal(words[at].value, want[k].value);
                at++;
            }
        }
        assert_int_equal(end, at);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_word_counts),
        cmocka_unit_test(rare_rules_remember_every_word_that_they_read),
        cmocka_unit_test(the_tip_is_the_innermost_frame),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
