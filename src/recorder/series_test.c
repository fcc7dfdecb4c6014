// SPDX-License-Identifier: MIT
// series against a naive list of every event; peak_bound against all orders of small histories.
#include "recorder/series.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "recorder/peak_bound.h"

struct moment {
    uint64_t time_ms;
    uint64_t allocated_bytes; // one allocation of this size, or
    uint64_t freed_bytes;     // one free of this size
};

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void feed(struct series *series, struct running_sums *sums, const struct moment *moment)
{
    (void)!series_advance(series, sums, moment->time_ms); // how often it merged shows below
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

static void what_a_process_leaves_behind_counts_in_its_last_slice(void **state)
{
    (void)state;
    static struct series series;
    static struct rec_slice slices[SERIES_SLICES_MAX];
    struct running_sums sums = {0};
    series_init(&series);
    feed(&series, &sums, &(struct moment){.time_ms = 0, .allocated_bytes = 100});
    sums.live_bytes -= 100; // the process ends
    sums.dropped_bytes += 100;
    assert_int_equal(series_collect(&series, &sums, slices), 1);
    assert_int_equal(slices[0].live_bytes, 100);
    assert_int_equal(series_advance(&series, &sums, 2), 0);
    assert_int_equal(series_collect(&series, &sums, slices), 3);
    assert_int_equal(slices[0].live_bytes, 100);
    assert_int_equal(slices[1].live_bytes, 0);
    assert_int_equal(slices[2].live_max_bytes, 0);
}

enum {
    BOUND_LANES = 3,
    BOUND_STEPS = 3, // of a lane in a tick
};

// The highest sum over all orders of the lanes' steps, and the lowest such highest sum.
static void all_orders(const int64_t steps[BOUND_LANES][BOUND_STEPS],
                       unsigned done[BOUND_LANES],
                       int64_t sum,
                       int64_t peak,
                       int64_t *highest,
                       int64_t *lowest)
{
    peak = sum > peak ? sum : peak;
    bool is_end = true;
    for (unsigned lane = 0; lane < BOUND_LANES; lane++) {
        if (done[lane] < BOUND_STEPS) {
            is_end = false;
            int64_t next = sum + steps[lane][done[lane]];
            done[lane]++;
            all_orders(steps, done, next, peak, highest, lowest);
            done[lane]--;
        }
    }
    if (is_end) {
        *highest = peak > *highest ? peak : *highest;
        *lowest = peak < *lowest ? peak : *lowest;
    }
}

static void the_bound_holds_for_every_order_within_a_tick(void **state)
{
    (void)state;
    uint64_t random = 99;
    for (int round = 0; round < 200; round++) {
        struct peak_bound bound;
        struct lane_swing swings[BOUND_LANES] = {{0}};
        peak_bound_init(&bound);
        int64_t live = 10000;
        bound.start_bytes = (uint64_t)live;
        int64_t seen_peak = live;
        int64_t highest = live;
        int64_t lowest = live;
        for (int tick = 0; tick < 4; tick++) {
            int64_t steps[BOUND_LANES][BOUND_STEPS];
            int64_t tick_highest = INT64_MIN;
            int64_t tick_lowest = INT64_MAX;
            for (unsigned i = 0; i < BOUND_LANES * BOUND_STEPS; i++) {
                bool is_idle = tick == 3 && i >= BOUND_STEPS; // a tick of one lane alone
                steps[i / BOUND_STEPS][i % BOUND_STEPS] =
                    is_idle ? 0 : (int64_t)(next_random(&random) % 1001) - 500;
            }
            unsigned done[BOUND_LANES] = {0};
            all_orders((const int64_t(*)[BOUND_STEPS])steps, done, live, live, &tick_highest,
                       &tick_lowest);
            highest = tick_highest > highest ? tick_highest : highest;
            lowest = tick_lowest > lowest ? tick_lowest : lowest;
            for (unsigned lane = 0; lane < BOUND_LANES; lane++) {
                for (unsigned i = 0; i < BOUND_STEPS; i++) {
                    if (steps[lane][i] == 0) {
                        continue; // no event
                    }
                    peak_bound_change(&bound, &swings[lane], steps[lane][i]);
                    live += steps[lane][i];
                    seen_peak = live > seen_peak ? live : seen_peak;
                }
            }
            peak_bound_end_tick(&bound, (uint64_t)live);
        }
        int64_t error = (int64_t)peak_bound_error(&bound, (uint64_t)seen_peak, (uint64_t)live);
        assert_true(seen_peak + error >= highest);
        assert_true(seen_peak - error <= lowest);
    }
}

static void one_lane_alone_is_exact(void **state)
{
    (void)state;
    struct peak_bound bound;
    struct lane_swing swing = {0};
    peak_bound_init(&bound);
    static const int64_t steps[] = {100, -50, 300, -350, 10};
    uint64_t live = 0;
    uint64_t peak = 0;
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        peak_bound_change(&bound, &swing, steps[i]);
        live += (uint64_t)steps[i];
        peak = live > peak ? live : peak;
        assert_int_equal(peak_bound_error(&bound, peak, live), 0);
        peak_bound_end_tick(&bound, live);
    }
    assert_int_equal(peak, 350);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slices_add_up_whatever_the_length_of_the_run),
        cmocka_unit_test(what_a_process_leaves_behind_counts_in_its_last_slice),
        cmocka_unit_test(the_bound_holds_for_every_order_within_a_tick),
        cmocka_unit_test(one_lane_alone_is_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
