// SPDX-License-Identifier: MIT
// Tests of growth verdicts on drawn programs: each pattern has random rates, sizes and turning
// points, its clock has stalls, and other call sites work beside it. Only verdicts are counted, by
// confidence: with high confidence at most one of 100 is wrong, with any at most five.
//
// CAIRN_SHOW=1 prints each wrong verdict, and CAIRN_DRAWS the number of draws of each pattern.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "profile/growth/growth_shape.h"
#include "profile/growth/test_support/drawn_patterns.h"

enum {
    DRAWS = 6,
    SEED = 20261129,
};

struct score {
    unsigned all[CONFIDENCE_COUNT];
    unsigned wrong[CONFIDENCE_COUNT];
};

static void judge_one(const struct drawn_pattern *pattern, struct drawn_run *run, struct score *out)
{
    struct growth_verdict verdict;
    const bool is_shown = getenv("CAIRN_SHOW") != NULL;
    const struct growth_history history = drawn_history(run);
    assert_int_equal(growth_judge(&history, &verdict), ERR_OK);
    const bool is_right = (pattern->classes >> verdict.class & 1) != 0;
    out->all[verdict.confidence]++;
    out->wrong[verdict.confidence] += !is_right;
    if (is_shown && !is_right) {
        print_message("%s in %zu slices, seed %llu: %s, confidence %s\n", pattern->name,
                      history.count, (unsigned long long)run->seed,
                      growth_class_name(verdict.class), growth_confidence_name(verdict.confidence));
    }
}

static void assert_limits(const struct score *sum)
{
    unsigned all = 0;
    unsigned wrong = 0;
    for (size_t c = 0; c < CONFIDENCE_COUNT; c++) {
        print_message("confidence %s: %u of %u are wrong\n", growth_confidence_name(c),
                      sum->wrong[c], sum->all[c]);
        all += sum->all[c];
        wrong += sum->wrong[c];
    }
    assert_in_range(100 * sum->wrong[CONFIDENCE_HIGH], 0, sum->all[CONFIDENCE_HIGH]);
    assert_in_range(100 * wrong, 0, 5 * all);
    assert_in_range(2 * sum->all[CONFIDENCE_HIGH], all, 2 * all); // and most are sure
}

static void judge_all(const struct drawn_pattern *patterns, size_t count)
{
    static const size_t lengths[] = {40, 250, 1000}; // slices
    static struct drawn_run run;
    const char *asked = getenv("CAIRN_DRAWS");
    const unsigned draws = asked != NULL ? (unsigned)strtoul(asked, NULL, 10) : DRAWS;
    struct score sum = {0};
    for (size_t p = 0; p < count; p++) {
        for (unsigned i = 0; i < draws * ARRAY_LEN(lengths); i++) {
            drawn_run_play(&run, &patterns[p], lengths[i % ARRAY_LEN(lengths)],
                           SEED + p * 1000003 + i);
            if (i % ARRAY_LEN(lengths) == 2 && i % 2 == 0) {
                drawn_run_coarsen(&run, 4);
            }
            if (run.live_count > 0) { // else no view lists it
                judge_one(&patterns[p], &run, &sum);
            }
        }
    }
    assert_limits(&sum);
}

static void drawn_programs_are_called_what_they_are(void **state)
{
    (void)state;
    judge_all(drawn_patterns, drawn_pattern_count);
}

static void services_are_called_what_they_are(void **state)
{
    (void)state;
    judge_all(service_patterns, service_pattern_count);
}

static void everyday_programs_are_called_what_they_are(void **state)
{
    (void)state;
    judge_all(everyday_patterns, everyday_pattern_count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drawn_programs_are_called_what_they_are),
        cmocka_unit_test(services_are_called_what_they_are),
        cmocka_unit_test(everyday_programs_are_called_what_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
