// SPDX-License-Identifier: MIT
// Thousands of short histories of a process's memory, so short that most figures lie at a border of
// a rule: the verdicts follow from the history alone (changed_bytes.h).
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/test_support/changed_bytes.h"
#include "profile/growth/growth_shape.h"

enum {
    HISTORIES = 4000, // of each kind
    SLICES_MAX = 96,
};

enum kind {
    LEAKS,   // births all the time, no frees
    NOISE,   // any level
    CYCLES,  // rises and falls
    STEPS,   // few births, the rest level
    RENEWED, // the level remains
    KINDS,
};

struct curve {
    uint64_t live_bytes[SLICES_MAX];
    uint64_t birth_bytes[SLICES_MAX];
};

static void fill(struct curve *curve, size_t count, enum kind kind, uint64_t *random)
{
    const size_t period = 2 + below_random(random, 12);
    const size_t begin = below_random(random, count);
    const size_t end = begin + 1 + below_random(random, count - begin);
    const uint64_t unit = 1 + below_random(random, 4);
    uint64_t kept_bytes = 0;
    for (size_t i = 0; i < count; i++) {
        const bool is_within = i >= begin && i < end;
        const bool has_birth = is_within && (kind == STEPS   ? below_random(random, 9) == 0
                                             : kind == LEAKS ? true
                                                             : below_random(random, 2) == 0);
        const uint64_t others = kind == CYCLES  ? (i % period) * unit
                                : kind == NOISE ? below_random(random, 8) * unit
                                                : below_random(random, 2);
        curve->birth_bytes[i] = has_birth ? unit * (1 + below_random(random, 3)) : 0;
        kept_bytes += curve->birth_bytes[i];
        curve->live_bytes[i] = (kind == RENEWED ? unit * 30 : kept_bytes) + others;
    }
}

static void short_histories_have_the_same_verdicts_each_time(void **state)
{
    static const char *const kinds[KINDS] = {"leaks", "noise", "cycles", "steps", "renewed"};
    (void)state;
    unsigned changed = 0;
    for (unsigned kind = 0; kind < KINDS; kind++) {
        struct outcome_sum sums[2] = {0};
        uint64_t random = kind + 1;
        for (unsigned i = 0; i < 2 * HISTORIES; i++) {
            random = i % HISTORIES == 0 ? kind + 1 : random;
            struct curve curve;
            struct growth_verdict verdict;
            char said[128];
            const size_t count = 1 + below_random(&random, SLICES_MAX);
            fill(&curve, count, (enum kind)kind, &random);
            const struct growth_history history = {.count = count,
                                                   .live_bytes = curve.live_bytes,
                                                   .birth_bytes = curve.birth_bytes,
                                                   .allocations = below_random(&random, 40),
                                                   .step = 1 + below_random(&random, 3)};
            assert_int_equal(growth_judge(&history, &verdict), ERR_OK);
            (void)snprintf(said, sizeof(said), "%s %s %.4f %.4f %zu",
                           growth_class_name(verdict.class),
                           growth_confidence_name(verdict.confidence), verdict.slope_bytes,
                           verdict.slope_squares, verdict.latest_birth);
            outcome_add_text(&sums[i / HISTORIES], said);
        }
        changed += !outcomes_agree(sums, kinds[kind]);
    }
    assert_int_equal(changed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_histories_have_the_same_verdicts_each_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
