// SPDX-License-Identifier: MIT
// Tests of growth_shape: figures of a verdict, computed from one byte at a time.
#include "profile/growth/growth_shape.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"

// Return the slope of the least-squares line through `count` levels.
static double slope_of(const double *levels, int count)
{
    double sum_time = 0;
    double sum_level = 0;
    double together = 0;
    double squares = 0;
    for (int i = 0; i < count; i++) {
        sum_time += i;
        sum_level += levels[i];
        together += i * levels[i];
        squares += (double)i * i;
    }
    return (count * together - sum_time * sum_level) / (count * squares - sum_time * sum_time);
}

// What one byte adds to the slope is the slope of its own levels: 0, and 1 from its birth on, or 1
// in one slice only.
static void the_squares_of_a_slope_are_those_of_its_bytes(void **state)
{
    (void)state;
    enum {
        SLICES = 64,
        HALF = SLICES / 2, // the slope is that of the last half
        BIRTH = 1000,
    };
    for (uint64_t freed = 0; freed <= 600; freed += 300) { // live in each slice
        uint64_t live[SLICES];
        uint64_t births[SLICES];
        double of_births = 0;
        double largest = 0;
        for (uint64_t i = 0; i < SLICES; i++) {
            births[i] = BIRTH;
            live[i] = BIRTH * (i + 1) + freed;
        }
        for (int born = 0; born < HALF; born++) {
            double levels[HALF];
            for (int i = 0; i < HALF; i++) {
                levels[i] = i >= born;
            }
            const double slope = slope_of(levels, HALF);
            of_births += BIRTH * slope * slope;
            largest = fmax(largest, slope);
        }
        const double last_alone[HALF] = {[HALF - 1] = 1};
        const double wanted =
            of_births + (double)freed * HALF * largest * slope_of(last_alone, HALF);
        const struct growth_history history = {.count = SLICES,
                                               .live_bytes = live,
                                               .birth_bytes = births,
                                               .allocations = 10000,
                                               .step = 1};
        struct growth_verdict verdict;
        assert_int_equal(growth_judge(&history, &verdict), ERR_OK);
        assert_int_equal(verdict.class, GROWTH_GROWING);
        assert_true(fabs(verdict.slope_bytes - BIRTH) < 1e-6);
        if (fabs(verdict.slope_squares - wanted) > 1e-6 * wanted) {
            fail_msg("%f, not %f", verdict.slope_squares, wanted);
        }
    }
}

enum {
    LIFE = 200, // slices
    UNIT = 1000,
};

struct lived {
    uint64_t live[LIFE];
    uint64_t births[LIFE];
    uint64_t work[LIFE];
    uint64_t allocations;
    uint64_t kept;
};

// A slice in which `blocks` are kept, among `work` allocations of the whole process.
static void live_on(struct lived *lived, size_t slice, uint64_t blocks, uint64_t work)
{
    lived->births[slice] = blocks * UNIT;
    lived->live[slice] = (slice > 0 ? lived->live[slice - 1] : 0) + blocks * UNIT;
    lived->work[slice] = work;
    lived->allocations += blocks;
    lived->kept += blocks;
}

static struct growth_verdict judge(const struct lived *lived)
{
    struct growth_verdict verdict;
    const struct growth_history history = {.count = LIFE,
                                           .live_bytes = lived->live,
                                           .birth_bytes = lived->births,
                                           .work = lived->work,
                                           .allocations = lived->allocations,
                                           .kept = lived->kept,
                                           .step = 1};
    assert_int_equal(growth_judge(&history, &verdict), ERR_OK);
    return verdict;
}

// The same memory is a leak, a warm-up that may be one, or a full cache: by what the process did
// while it grew and since.
static void what_grows_is_measured_against_the_work(void **state)
{
    (void)state;
    static const struct {
        const char *class;
        const char *confidence;
        uint64_t work_then;
        uint64_t work_since;
        size_t grew_until;
        bool is_idle_since;
    } cases[] = {
        {"growing", "medium", 10, 0, 120, false},
        {"stopped", "low", 2, 0, 0, true},
        {"stopped", "high", 10, 10, 0, false},
        {"stopped", "high", 10, 2, 0, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct lived lived = {0};
        for (size_t t = 0; t < LIFE; t++) {
            const bool is_early = t < 120;
            live_on(&lived, t, is_early ? 2 : 0,
                    is_early ? cases[i].work_then : cases[i].work_since);
        }
        const struct growth_verdict verdict = judge(&lived);
        assert_string_equal(growth_class_name(verdict.class), cases[i].class);
        assert_string_equal(growth_confidence_name(verdict.confidence), cases[i].confidence);
        assert_int_equal(verdict.grew_until, cases[i].grew_until);
        assert_int_equal(verdict.is_idle_since, cases[i].is_idle_since);
        assert_true(verdict.slope_bytes == 0 || fabs(verdict.slope_bytes - 2 * UNIT) < UNIT / 20.0);
    }
}

// A few allocations at the exit, or of a timer, are no work.
static void an_exit_is_no_work(void **state)
{
    (void)state;
    struct lived lived = {0};
    for (size_t t = 0; t < LIFE; t++) {
        live_on(&lived, t, t < 130 ? 1 : 0, t < 130 ? 20 : t == LIFE - 1 || t % 30 == 0);
    }
    const struct growth_verdict verdict = judge(&lived);
    assert_string_equal(growth_class_name(verdict.class), "growing");
    assert_int_equal(verdict.grew_until, 130);
}

// A time without work in the middle neither stops the growth nor changes its slope.
static void a_calm_in_between_says_nothing(void **state)
{
    (void)state;
    struct lived lived = {0};
    for (size_t t = 0; t < LIFE; t++) {
        const bool is_calm = t >= 70 && t < 170;
        live_on(&lived, t, is_calm ? 0 : 1, is_calm ? 0 : 10);
    }
    const struct growth_verdict verdict = judge(&lived);
    assert_string_equal(growth_class_name(verdict.class), "growing");
    assert_string_equal(growth_confidence_name(verdict.confidence), "high");
    assert_int_equal(verdict.grew_until, LIFE);
    assert_true(fabs(verdict.slope_bytes - UNIT) < UNIT / 20.0);
}

// One block that is replaced by a larger one each time: all births are in the last slice.
static void a_block_that_grows_is_growth(void **state)
{
    (void)state;
    for (size_t step = 1; step <= 8; step *= 2) {
        struct lived lived = {.allocations = LIFE / step, .kept = 1};
        for (size_t t = 0; t < LIFE; t++) {
            lived.live[t] = (t / step + 1) * step * UNIT;
            lived.work[t] = 10;
        }
        lived.births[LIFE - step] = lived.live[LIFE - 1];
        const struct growth_verdict verdict = judge(&lived);
        assert_string_equal(growth_class_name(verdict.class), "growing");
        assert_string_equal(growth_confidence_name(verdict.confidence), "high");
        assert_true(verdict.is_replaced);
        assert_true(fabs(verdict.slope_bytes - UNIT) < UNIT / 20.0);
    }
}

// What grew, paused and grows again has the slope of its last stretch, wherever the pause ends.
static void a_slope_does_not_depend_on_where_a_pause_ends(void **state)
{
    (void)state;
    for (size_t again = 110; again < 175; again++) {
        struct lived lived = {0};
        for (size_t t = 0; t < LIFE; t++) {
            live_on(&lived, t, t < 60 || t >= again || t == 100 ? 8 : 0, 20);
        }
        const struct growth_verdict verdict = judge(&lived);
        assert_string_equal(growth_class_name(verdict.class), "growing");
        if (fabs(verdict.slope_bytes - 8 * UNIT) > 0.4 * UNIT) {
            fail_msg("%.0f, again at %zu", verdict.slope_bytes, again);
        }
    }
}

// Bursts, when the last one has just begun, and memory of the last fiftieth.
static void what_comes_at_the_end_is_no_growth(void **state)
{
    (void)state;
    for (size_t began = 1; began < 12; began++) {
        struct lived lived = {.allocations = 500, .kept = 50};
        for (size_t t = 0; t < LIFE; t++) {
            const size_t phase = (t + 20 - (LIFE - began) % 20) % 20; // a burst begins at 0
            lived.live[t] = phase < 3 || t >= LIFE - began ? 50 * UNIT : 0;
            lived.work[t] = 10;
        }
        lived.births[LIFE - began] = (uint64_t)50 * UNIT;
        assert_string_equal(growth_class_name(judge(&lived).class), "bursts");
    }
    struct lived late = {0};
    for (size_t t = 0; t < LIFE; t++) {
        live_on(&late, t, t >= LIFE - 8 ? 60 : 0, 10);
    }
    assert_string_equal(growth_class_name(judge(&late).class), "late");
}

// A queue whose blocks are all replaced, and which grew at a rate until the service became slower
// for a while.
static void a_step_of_many_is_growth(void **state)
{
    (void)state;
    enum {
        ARRIVALS = 10, // in each slice
        STEP = LIFE / 16,
    };
    for (size_t step = LIFE * 5 / 8; step < LIFE * 7 / 8; step += 10) {
        struct lived lived = {0};
        uint64_t length = 0;
        for (size_t t = 0; t < LIFE; t++) {
            length += t < LIFE / 2 ? 2 : t >= step && t < step + STEP ? 8 : t % 4 == 0;
            live_on(&lived, t, ARRIVALS, 30);
            lived.live[t] = length * UNIT;
        }
        memset(lived.births, 0, (LIFE - length / ARRIVALS) * sizeof(*lived.births));
        lived.kept = length;
        assert_string_equal(growth_class_name(judge(&lived).class), "growing");
    }
}

// After a start, one step alone says nothing.
static void a_step_after_a_start_is_no_growth(void **state)
{
    (void)state;
    for (size_t step = LIFE / 2; step < LIFE * 3 / 4; step += 10) {
        struct lived lived = {0};
        for (size_t t = 0; t < LIFE; t++) {
            live_on(&lived, t, t < LIFE / 12 || (t >= step && t < step + LIFE / 20) ? 20 : 0, 30);
        }
        assert_string_equal(growth_class_name(judge(&lived).class), "stopped");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_squares_of_a_slope_are_those_of_its_bytes),
        cmocka_unit_test(what_grows_is_measured_against_the_work),
        cmocka_unit_test(an_exit_is_no_work),
        cmocka_unit_test(a_calm_in_between_says_nothing),
        cmocka_unit_test(a_block_that_grows_is_growth),
        cmocka_unit_test(a_slope_does_not_depend_on_where_a_pause_ends),
        cmocka_unit_test(what_comes_at_the_end_is_no_growth),
        cmocka_unit_test(a_step_of_many_is_growth),
        cmocka_unit_test(a_step_after_a_start_is_no_growth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
