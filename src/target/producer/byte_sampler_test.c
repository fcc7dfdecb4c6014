// SPDX-License-Identifier: MIT
// byte_sampler: the draw against libm, and the choice against the weights. All seeds are fixed.
#include "target/producer/byte_sampler.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/hash.h"
#include "session/books/sampling_level.h"

#define TWO_64 0x1p64

static void the_logarithm_is_that_of_libm(void **state)
{
    (void)state;
    static const uint64_t edges[] = {
        0, 1, 2, 3, (uint64_t)1 << 63, ((uint64_t)1 << 63) - 1, UINT64_MAX, UINT64_MAX - 1};
    enum {
        DRAWN = 100000
    };
    const uint64_t mean = (uint64_t)64 << 20;
    for (uint64_t i = 0; i < ARRAY_LEN(edges) + DRAWN; i++) {
        const uint64_t random = i < ARRAY_LEN(edges) ? edges[i] : hash_mix(i);
        const double wanted = -log((double)(random != 0 ? random : 1) / TWO_64) * (double)mean;
        const double found = (double)byte_sampler_exponential(random, mean);
        // The error of the logarithm, rounding down, and the rounding of `random` to a double.
        if (fabs(found - wanted) > 1.1 + wanted * 0x1p-52) {
            fail_msg("%llu: %f instead of %f", (unsigned long long)random, found, wanted);
        }
    }
}

// The share of draws above k means is exp(-k), within five standard errors.
static void draws_are_exponential(void **state)
{
    (void)state;
    enum {
        DRAWS = 400000,
        INTERVAL = 1600000,
        MEAN = 900000
    };
    struct lane_header *lane = calloc(1, sizeof(*lane));
    struct byte_sampler sampler;
    static const double limits[] = {0.01, 0.1, 0.5, 1, 2, 4, 8};
    double above[ARRAY_LEN(limits)] = {0};
    double sum = 0;
    byte_sampler_init(&sampler, lane, INTERVAL, 7);
    for (int i = 0; i < DRAWS; i++) {
        byte_sampler_draw(&sampler, lane);
        sum += (double)sampler.next;
        for (size_t k = 0; k < ARRAY_LEN(limits); k++) {
            above[k] += (double)sampler.next >= limits[k] * MEAN;
        }
    }
    assert_true(fabs(sum / DRAWS / MEAN - 1) < 5 / sqrt(DRAWS)); // the deviation is the mean
    for (size_t k = 0; k < ARRAY_LEN(limits); k++) {
        const double p = exp(-limits[k]);
        const double error = sqrt(p * (1 - p) / DRAWS);
        if (fabs(above[k] / DRAWS - p) > 5 * error) {
            fail_msg("above %g: %g instead of %g", limits[k], above[k] / DRAWS, p);
        }
    }
    free(lane);
}

// Blocks of several sizes in turn: each is chosen with the inverse of its weight, and the others
// are counted exactly.
static void blocks_are_chosen_by_their_weights(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {0,    1,    24,   500,  1637, 1638, 2000,
                                     2729, 2730, 4094, 4095, 4096, 20000};
    enum {
        TURNS = 200000,
        INTERVAL = 4096
    };
    struct lane_header *lane = calloc(1, sizeof(*lane));
    struct byte_sampler sampler;
    uint64_t chosen[ARRAY_LEN(sizes)] = {0};
    uint64_t counted = 0;
    uint64_t counted_bytes = 0;
    byte_sampler_init(&sampler, lane, INTERVAL, 11);
    for (int i = 0; i < TURNS; i++) {
        for (size_t k = 0; k < ARRAY_LEN(sizes); k++) {
            if (byte_sampler_chooses(&sampler, lane, sizes[k])) {
                chosen[k]++;
            } else {
                counted++;
                counted_bytes += sizes[k];
            }
        }
    }
    assert_int_equal(atomic_load(&lane->unsampled_allocations), counted);
    assert_int_equal(atomic_load(&lane->unsampled_bytes), counted_bytes);
    for (size_t k = 0; k < ARRAY_LEN(sizes); k++) {
        const double p = 1 / (double)block_weight(sizes[k], INTERVAL);
        const double error = sqrt(TURNS * p * (1 - p));
        if (fabs((double)chosen[k] - TURNS * p) > 5 * error) {
            fail_msg("%llu bytes: %llu chosen instead of %g", (unsigned long long)sizes[k],
                     (unsigned long long)chosen[k], TURNS * p);
        }
    }
    free(lane);
}

// A block is chosen with the inverse of its weight: the probability that it has a moment, times the
// probability that it is kept then. Both are compared with libm, over all intervals. A block is
// kept up to some random number, which halving finds.
static void moments_leave_the_inverse_of_the_weight(void **state)
{
    (void)state;
    for (uint64_t interval = 16; interval <= BLOCK_WEIGHT_INTERVAL_MAX; interval *= 2) {
        const double mean = (double)interval * 9 / 16;
        for (uint64_t size = 0; block_weight(size, interval) > 1; size += 1 + size / 7) {
            const double moment = -expm1(-((double)size + 1) / mean);
            const double wanted = 1 / (double)block_weight(size, interval);
            uint64_t kept = 0;
            for (uint64_t bit = (uint64_t)1 << 63; bit != 0; bit >>= 1) {
                kept |= byte_sampler_keeps(kept | bit, interval, size) ? bit : 0;
            }
            const double found = moment * ((double)kept / TWO_64);
            if (moment < wanted || fabs(found / wanted - 1) > 1e-6) {
                fail_msg("%llu bytes of %llu: %.9g instead of %.9g, moments %.9g",
                         (unsigned long long)size, (unsigned long long)interval, found, wanted,
                         moment);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_logarithm_is_that_of_libm),
        cmocka_unit_test(draws_are_exponential),
        cmocka_unit_test(blocks_are_chosen_by_their_weights),
        cmocka_unit_test(moments_leave_the_inverse_of_the_weight),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
