// SPDX-License-Identifier: MIT
// Tests of growth_shape: figures of a verdict, computed from one byte at a time.
#include "profile/time/growth_shape.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_squares_of_a_slope_are_those_of_its_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
