// SPDX-License-Identifier: MIT
// Reading words back: of each number of words, each may be the one that changed.
#include "unwind/remembered.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#define WORDS 21u // two rounds of eight, one of four, and one

static void each_word_counts(void **state)
{
    (void)state;
    uint64_t memory[WORDS];
    struct remembered_word words[WORDS];
    struct remembered_state states[2] = {0};
    const struct remembered r = {.states = states, .words = words};
    for (uint32_t i = 0; i < WORDS; i++) {
        memory[i] = 1000 + i;
        // Backwards, as stacks are.
        words[i] = (struct remembered_word){.addr = (uint64_t)(uintptr_t)&memory[WORDS - 1 - i],
                                            .value = 1000 + WORDS - 1 - i};
    }
    for (uint32_t count = 0; count <= WORDS; count++) {
        states[1].first_word = count;
        assert_true(remembered_hold(words, count));
        assert_int_equal(remembered_read_back(&r, 0, 1), count);
        for (uint32_t changed = 0; changed < WORDS; changed++) {
            memory[WORDS - 1 - changed] ^= (uint64_t)1 << (changed * 3);
            assert_int_equal(remembered_hold(words, count), changed >= count);
            assert_int_equal(remembered_read_back(&r, 0, 1), changed < count ? changed : count);
            memory[WORDS - 1 - changed] ^= (uint64_t)1 << (changed * 3);
        }
    }
    assert_int_equal(remembered_read_back(&r, 0, 0), 0);
}

// One frame, at which the walk ended: by a rule that uses fp, or one that does not.
static void the_tip_is_the_innermost_frame(void **state)
{
    (void)state;
    for (unsigned uses_fp = 0; uses_fp < 2; uses_fp++) {
        struct unwind_frame frames[1];
        struct remembered_state states[2] = {0};
        struct remembered r = {.capacity = 1, .frames = frames, .states = states};
        const enum rule_stop reason = uses_fp != 0 ? RULE_NO_TABLE : RULE_LAST;
        const struct fresh_frame fresh = {.regs = {.pc = 0x1000, .sp = 0x2000, .fp = 0x3000},
                                          .rule = rule_stopping(reason)};
        remembered_forget(&r);
        assert_false(remembered_is_at_tip(&r, &fresh.regs));
        assert_int_equal(remembered_replace(&r, 0, &fresh, 1, uses_fp != 0), 0);
        assert_true(remembered_is_at_tip(&r, &fresh.regs));
        assert_int_equal(r.tip.name, frames[0].name);
        struct frame_regs other = fresh.regs;
        other.pc++;
        assert_false(remembered_is_at_tip(&r, &other));
        other = fresh.regs;
        other.sp += 8;
        assert_false(remembered_is_at_tip(&r, &other));
        other = fresh.regs;
        other.fp++;
        assert_int_equal(remembered_is_at_tip(&r, &other), uses_fp == 0);
        remembered_forget(&r);
        assert_false(remembered_is_at_tip(&r, &fresh.regs));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_word_counts),
        cmocka_unit_test(the_tip_is_the_innermost_frame),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
