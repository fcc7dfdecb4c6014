// SPDX-License-Identifier: MIT
// Thousands of short histories of a process's memory, so short that most figures lie at a border of
// a rule: the verdicts are those of the last approval (changed_bytes.h).
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

static void short_histories_have_the_verdicts_of_before(void **state)
{
    static const struct {
        const char *name;
        uint64_t approved;
    } kinds[KINDS] = {{"leaks", 0x7f301ec68083e307},
                      {"noise", 0xf7f6ccb7782533be},
                      {"cycles", 0x82f3ab9ad56f0f88},
                      {"steps", 0x3195fc7486e08e43},
                      {"renewed", 0x772c84c5722aaf70}};
    (void)state;
    unsigned changed = 0;
    for (unsigned kind = 0; kind < KINDS; kind++) {
        struct outcome_sum sum = {0};
        uint64_t random = kind + 1;
        for (unsigned i = 0; i < HISTORIES; i++) {
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
            outcome_add_text(&sum, said);
        }
        changed += !outcome_is_approved(&sum, kinds[kind].name, kinds[kind].approved);
    }
    assert_int_equal(changed, 0); // if that is intended, approve the numbers above
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_histories_have_the_verdicts_of_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
