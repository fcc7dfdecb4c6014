// SPDX-License-Identifier: MIT
// Tests of growth verdicts on programs that two grammars draw, with what is true of them: by the
// curve of their memory (grammar.h), and by how they keep it (policies.h). Each runs at three
// lengths. At most one of 100 verdicts with high confidence is wrong, and at most five of 100 with
// any. A history without a verdict is not wrong, but at most one of ten has none.
//
// By day the same programs are drawn each time; with CAIRN_NIGHTLY others each night, three times
// as many. CAIRN_SEED=N draws those of that number, CAIRN_SHOW=1 prints each wrong verdict.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/test_support/by_night.h"
#include "profile/growth/test_support/grammar.h"
#include "profile/growth/test_support/policies.h"

enum {
    PROGRAMS = 1000, // a third by day
    SEED = 20261130,
    SECONDS_A_DAY = 86400,
};

struct score {
    unsigned all[CONFIDENCE_COUNT];
    unsigned wrong[CONFIDENCE_COUNT];
};

static uint64_t first_seed(void)
{
    const char *asked = getenv("CAIRN_SEED");
    const bool is_night = step_by_day(2) == 1;
    return asked != NULL ? strtoull(asked, NULL, 10)
           : is_night    ? (uint64_t)time(NULL) / SECONDS_A_DAY
                         : SEED;
}

static void
judge_one(const struct drawn_pattern *pattern, const struct drawn_run *run, struct score *score)
{
    struct growth_verdict verdict;
    const struct growth_history history = drawn_history(run);
    assert_int_equal(growth_judge(&history, &verdict), ERR_OK);
    const bool is_right =
        verdict.class == GROWTH_UNKNOWN || (pattern->classes >> verdict.class & 1) != 0;
    score->all[verdict.confidence]++;
    score->wrong[verdict.confidence] += !is_right;
    if (!is_right && getenv("CAIRN_SHOW") != NULL) {
        print_message("%s: in %zu slices %s, confidence %s\n", pattern->name, history.count,
                      growth_class_name(verdict.class), growth_confidence_name(verdict.confidence));
    }
}

static struct drawn_pattern draw_by_curve(uint64_t seed)
{
    static struct grammar_program program;
    grammar_draw(seed, &program);
    return program.pattern;
}

static struct drawn_pattern draw_by_policy(uint64_t seed)
{
    static struct policy_program program;
    policies_draw(seed, &program);
    return program.pattern;
}

static void judge_all(struct drawn_pattern (*draw)(uint64_t seed), bool (*is_clear)(void))
{
    static const size_t lengths[] = {40, 250, 1000}; // slices
    static struct drawn_run run;
    struct score score = {0};
    const uint64_t seed = first_seed();
    const unsigned step = step_by_day(3);
    for (unsigned i = 0; i < PROGRAMS; i += step) {
        const uint64_t number = seed * PROGRAMS + i;
        const struct drawn_pattern pattern = draw(number);
        for (size_t length = 0; length < ARRAY_LEN(lengths); length++) {
            drawn_run_play(&run, &pattern, lengths[length], number * 3 + length);
            if (run.live_count > 0 && is_clear()) {
                judge_one(&pattern, &run, &score);
            }
        }
    }
    unsigned all = 0;
    unsigned wrong = 0;
    for (size_t c = 0; c < CONFIDENCE_COUNT; c++) {
        all += score.all[c];
        wrong += score.wrong[c];
    }
    print_message("%u programs, seed %llu: wrong with high confidence %u of %u, with any %u of %u; "
                  "without a verdict %u\n",
                  PROGRAMS / step, (unsigned long long)seed, score.wrong[CONFIDENCE_HIGH],
                  score.all[CONFIDENCE_HIGH], wrong, all, score.all[CONFIDENCE_NONE]);
    assert_in_range(100 * score.wrong[CONFIDENCE_HIGH], 0, score.all[CONFIDENCE_HIGH]);
    assert_in_range(100 * wrong, 0, 5 * all);
    assert_in_range(10 * score.all[CONFIDENCE_NONE], 0, all);
    assert_in_range(all, PROGRAMS / step, 3 * (PROGRAMS / step + 1)); // most are clear
}

static void drawn_programs_are_called_what_they_are(void **state)
{
    (void)state;
    judge_all(draw_by_curve, grammar_is_clear);
}

static void leaks_and_nothing_else_are_said_to_grow(void **state)
{
    (void)state;
    judge_all(draw_by_policy, policies_are_clear);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drawn_programs_are_called_what_they_are),
        cmocka_unit_test(leaks_and_nothing_else_are_said_to_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
