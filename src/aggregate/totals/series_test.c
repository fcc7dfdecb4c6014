// SPDX-License-Identifier: MIT
// series against a naive list of every event.
#include "aggregate/totals/series.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/test_support/random_numbers.h"

struct moment {
    uint64_t time_ms;
    uint64_t allocated_bytes; // one allocation of this size, or
    uint64_t freed_bytes;     // one free of this size
};

static void feed(struct series *series, struct running_sums *sums, const struct moment *moment)
{
    (void)!series_advance(series, sums, moment->time_ms); // the number of merges shows below
    if (moment->allocated_bytes > 0) {
        sums->allocations++;
        sums->allocated_bytes += moment->allocated_bytes;
    } else {
        sums->frees++;
        sums->freed_bytes += moment->freed_bytes;
    }
    sums->live_bytes = sums->allocated_bytes - sums->freed_bytes;
    if (sums->live_bytes > sums->slice_max_bytes) {
        sums->slice_max_bytes = sums->live_bytes;
    }
}

static void compare_slices(const struct series *series,
                           const struct running_sums *sums,
                           const struct moment *moments,
                           size_t count)
{
    static struct rec_slice slices[SERIES_SLICES_MAX];
    uint32_t slice_count = series_collect(series, sums, slices);
    assert_in_range(slice_count, 1, SERIES_SLICES_MAX);
    size_t at = 0;
    uint64_t live = 0;
    for (uint32_t i = 0; i < slice_count; i++) {
        struct rec_slice want = {.live_max_bytes = live};
        for (; at < count && moments[at].time_ms / series->slice_ms == i; at++) {
            want.allocations += moments[at].allocated_bytes > 0;
            want.frees += moments[at].allocated_bytes == 0;
            want.allocated_bytes += moments[at].allocated_bytes;
            want.freed_bytes += moments[at].freed_bytes;
            live = live + moments[at].allocated_bytes - moments[at].freed_bytes;
            want.live_max_bytes = live > want.live_max_bytes ? live : want.live_max_bytes;
        }
        assert_int_equal(slices[i].allocations, want.allocations);
        assert_int_equal(slices[i].frees, want.frees);
        assert_int_equal(slices[i].allocated_bytes, want.allocated_bytes);
        assert_int_equal(slices[i].freed_bytes, want.freed_bytes);
        assert_int_equal(slices[i].live_bytes, live);
        assert_int_equal(slices[i].live_max_bytes, want.live_max_bytes);
    }
    assert_int_equal(at, count);
}

static void slices_add_up_whatever_the_length_of_the_run(void **state)
{
    (void)state;
    static const uint64_t steps_ms[] = {0, 1, 2, 7, 100, 5000, 10000000};
    enum {
        MOMENTS = 3000
    };
    struct moment *moments = calloc(MOMENTS, sizeof(*moments));
    struct series *series = malloc(sizeof(*series));
    assert_non_null(moments);
    assert_non_null(series);
    for (size_t k = 0; k < sizeof(steps_ms) / sizeof(steps_ms[0]); k++) {
        uint64_t random = k + 1;
        struct running_sums sums = {0};
        memset(series, 0, sizeof(*series));
        series_init(series);
        uint64_t time_ms = 0;
        for (size_t i = 0; i < MOMENTS; i++) {
            time_ms += steps_ms[k] > 0 ? next_random(&random) % (2 * steps_ms[k]) : 0;
            uint64_t live = sums.live_bytes;
            bool is_free = next_random(&random) % 2 == 0 && live > 0;
            moments[i] = (struct moment){.time_ms = time_ms};
            if (is_free) {
                moments[i].freed_bytes = 1 + next_random(&random) % live;
            } else {
                moments[i].allocated_bytes = 1 + next_random(&random) % 10000;
            }
            feed(series, &sums, moments + i);
            if (i % 500 == 499) {
                compare_slices(series, &sums, moments, i + 1);
            }
        }
    }
    free(series);
    free(moments);
}

static void what_the_last_process_held_counts_to_the_end(void **state)
{
    (void)state;
    static struct series series;
    static struct rec_slice slices[SERIES_SLICES_MAX];
    struct running_sums sums = {0};
    series_init(&series);
    feed(&series, &sums, &(struct moment){.time_ms = 0, .allocated_bytes = 100});
    sums.live_bytes -= 100; // the process ends, and is the last one
    sums.last_ended_bytes = 100;
    assert_int_equal(series_collect(&series, &sums, slices), 1);
    assert_int_equal(slices[0].live_bytes, 100);
    assert_int_equal(series_advance(&series, &sums, 2), 0);
    assert_int_equal(series_collect(&series, &sums, slices), 3);
    assert_int_equal(slices[0].live_bytes, 100);
    assert_int_equal(slices[1].live_bytes, 100);
    assert_int_equal(slices[2].live_max_bytes, 100);
    sums.last_ended_bytes = 0; // it is not: another one begins
    assert_int_equal(series_advance(&series, &sums, 4), 0);
    assert_int_equal(series_collect(&series, &sums, slices), 5);
    assert_int_equal(slices[1].live_bytes, 100);
    assert_int_equal(slices[2].live_bytes, 0);
    assert_int_equal(slices[3].live_bytes, 0);
    assert_int_equal(slices[4].live_max_bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slices_add_up_whatever_the_length_of_the_run),
        cmocka_unit_test(what_the_last_process_held_counts_to_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
