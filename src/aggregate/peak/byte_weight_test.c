// SPDX-License-Identifier: MIT
// byte_weight: weights have the mean 1 / p; estimates from them are unbiased, and so is the
// estimate of their variance. All seeds are fixed.
#include "aggregate/peak/byte_weight.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "aggregate/peak/peak_estimate.h"
#include "base/compiler.h"
#include "base/hash.h"

static void the_mean_weight_is_one_in_p(void **state)
{
    (void)state;
    static const struct {
        uint64_t mean_bytes;
        uint64_t size_bytes;
    } cases[] = {{16, 0},          {16, 16},         {4096, 24},          {4096, 4095},
                 {524288, 0},      {524288, 100},    {524288, 1 << 20},   {64 << 20, 0},
                 {64 << 20, 1000}, {16, (size_t)-1}, {524288, 100 << 20}, {1000000, 693146}};
    enum {
        DRAWS = 100000
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint64_t random = i;
        const double wanted =
            -1 / expm1(-((double)cases[i].size_bytes + 1) / (double)cases[i].mean_bytes);
        double sum = 0;
        for (int k = 0; k < DRAWS; k++) {
            const uint32_t shift =
                byte_weight_shift(&random, cases[i].mean_bytes, cases[i].size_bytes);
            const double drawn = (double)((uint64_t)1 << shift);
            assert_true(drawn > wanted / 2 && drawn < wanted * 2 + 1);
            sum += drawn;
        }
        // One of two values, so the deviation is at most half of their distance.
        if (fabs(sum / DRAWS - wanted) > 5 * wanted / 2 / sqrt(DRAWS)) {
            fail_msg("%llu bytes: %f instead of %f", (unsigned long long)cases[i].size_bytes,
                     sum / DRAWS, wanted);
        }
    }
}

// Choose among blocks with a naive coin, many times: estimates of blocks and bytes have the true
// mean, and their spread is the one that the estimated variance states.
static void sums_are_unbiased_and_state_their_error(void **state)
{
    (void)state;
    enum {
        BLOCKS = 2000,
        MEAN = 8192,
        RUNS = 2000
    };
    double true_bytes = 0;
    double sum_bytes = 0;
    double sum_blocks = 0;
    double sum_squares = 0;
    double sum_variance = 0;
    uint64_t random = 1;
    uint64_t weight_random = 5;
    for (int i = 0; i < BLOCKS; i++) {
        true_bytes += 16 + i % 500;
    }
    for (int run = 0; run < RUNS; run++) {
        double bytes = 0;
        for (int i = 0; i < BLOCKS; i++) {
            const uint64_t size = 16 + (uint64_t)(i % 500);
            const double p = -expm1(-((double)size + 1) / MEAN);
            if ((double)hash_mix(random++) < p * 0x1p64) {
                const uint32_t drawn = (uint32_t)1 << byte_weight_shift(&weight_random, MEAN, size);
                bytes += drawn * (double)size;
                sum_blocks += drawn;
                sum_variance += peak_estimate_variance(size, drawn);
            }
        }
        sum_bytes += bytes;
        sum_squares += (bytes - true_bytes) * (bytes - true_bytes);
    }
    const double deviation = sqrt(sum_squares / RUNS);
    assert_true(fabs(sum_bytes / RUNS - true_bytes) < 5 * deviation / sqrt(RUNS));
    assert_true(fabs(sum_blocks / RUNS / BLOCKS - 1) < 0.02);
    // The relative deviation of a variance from this many runs is sqrt(2 / RUNS), 3 %.
    assert_true(fabs(sum_variance / sum_squares - 1) < 5 * sqrt(2.0 / RUNS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_mean_weight_is_one_in_p),
        cmocka_unit_test(sums_are_unbiased_and_state_their_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
