// SPDX-License-Identifier: MIT
// peak_bound against all orders of small histories, and against lanes whose threads hold back what
// they did.
#include "recorder/peak_bound.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
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

// A recording that has had several lanes at a time.
static struct peak_bound bound_of_several(uint64_t start_bytes)
{
    struct peak_bound bound;
    peak_bound_init(&bound);
    bound.is_shared = true;
    bound.start_bytes = start_bytes;
    return bound;
}

// What one thread did, and what the recorder knows of it. Bytes are above what the recorder took
// for live when its tick began.
struct thread_model {
    struct lane_swing swing;
    int64_t true_bytes;
    int64_t highest_bytes; // of true_bytes, in the recorder's tick
    int64_t top_bytes;     // of true_bytes, in all own ticks that reach into it
    int64_t held_bytes;
    int64_t own_start_bytes;
    int64_t own_highest_bytes; // in the thread's own tick
    int64_t most_held_bytes;   // the same
};

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

// The thread allocates or frees; what it holds back the recorder does not see.
static void act(struct thread_model *t, struct peak_bound *bound, int64_t change, bool is_held)
{
    t->true_bytes += change;
    t->highest_bytes = most(t->highest_bytes, t->true_bytes);
    t->own_highest_bytes = most(t->own_highest_bytes, t->true_bytes);
    t->top_bytes = most(t->top_bytes, t->own_highest_bytes);
    if (is_held) {
        t->held_bytes += change;
        t->most_held_bytes = most(t->most_held_bytes, t->held_bytes);
    } else {
        peak_bound_change(bound, &t->swing, change);
    }
}

static uint64_t rise_of(const struct thread_model *t)
{
    return (uint64_t)(t->own_highest_bytes - t->own_start_bytes);
}

// The thread's own tick is over: it sends what it holds, says how high it was, and begins another.
static void end_own_tick(struct thread_model *t, struct peak_bound *bound)
{
    peak_bound_change(bound, &t->swing, t->held_bytes);
    peak_bound_rise(bound, &t->swing, rise_of(t), (uint64_t)t->most_held_bytes);
    peak_bound_begin_own_tick(bound, &t->swing);
    t->own_start_bytes = t->true_bytes;
    t->own_highest_bytes = t->true_bytes;
    t->held_bytes = 0;
    t->most_held_bytes = 0;
}

static void live_a_little(struct thread_model *t, struct peak_bound *bound, uint64_t *random)
{
    const uint64_t events = next_random(random) % 6;
    for (uint64_t i = 0; i < events; i++) {
        const uint64_t r = next_random(random);
        const int64_t bytes = (int64_t)(r % 500);
        const bool is_held = (r >> 20 & 1) != 0;
        const bool is_free = (r >> 21 & 1) != 0 && (!is_held || t->held_bytes >= bytes);
        act(t, bound, is_free ? -bytes : bytes, is_held);
    }
    if (next_random(random) % 3 != 0) {
        end_own_tick(t, bound);
    }
}

// The recorder's tick is over, in which it saw the lane change by seen_bytes; the thread's own goes
// on.
static void follow_tick(struct thread_model *t, int64_t seen_bytes)
{
    t->true_bytes -= seen_bytes;
    t->own_start_bytes -= seen_bytes;
    t->own_highest_bytes -= seen_bytes;
    t->highest_bytes = t->true_bytes;
    t->top_bytes = t->own_highest_bytes;
}

struct tick_truth {
    int64_t lowest_upper_bytes;  // an upper bound may not be less
    int64_t highest_upper_bytes; // and need not be more
};

static struct tick_truth
run_tick(struct thread_model *threads, struct peak_bound *bound, int64_t *live, uint64_t *random)
{
    struct tick_truth truth = {.lowest_upper_bytes = *live, .highest_upper_bytes = *live};
    peak_bound_clear_open(bound);
    for (unsigned i = 0; i < BOUND_LANES; i++) {
        struct thread_model *t = &threads[i];
        live_a_little(t, bound, random);
        live_a_little(t, bound, random); // it may begin several ticks of its own
        truth.lowest_upper_bytes += t->highest_bytes;
        truth.highest_upper_bytes += most(t->top_bytes, 0);
        if (t->most_held_bytes > 0) {
            peak_bound_add_open(bound, &t->swing, rise_of(t), (uint64_t)t->most_held_bytes);
        }
        const int64_t seen_bytes = t->true_bytes - t->held_bytes;
        *live += seen_bytes;
        follow_tick(t, seen_bytes);
    }
    peak_bound_end_tick(bound, (uint64_t)*live);
    return truth;
}

static void what_is_held_back_is_bounded_and_no_further_than_need_be(void **state)
{
    (void)state;
    uint64_t random = 7;
    for (int round = 0; round < 2000; round++) {
        struct thread_model threads[BOUND_LANES] = {{.true_bytes = 0}};
        int64_t live = 100000;
        struct peak_bound bound = bound_of_several((uint64_t)live);
        struct tick_truth all = {0};
        for (int tick = 0; tick < 6; tick++) {
            const struct tick_truth truth = run_tick(threads, &bound, &live, &random);
            all.lowest_upper_bytes = most(all.lowest_upper_bytes, truth.lowest_upper_bytes);
            all.highest_upper_bytes = most(all.highest_upper_bytes, truth.highest_upper_bytes);
        }
        assert_in_range(bound.upper_bytes, all.lowest_upper_bytes, all.highest_upper_bytes);
    }
}

// The second of two own ticks in one tick of the recorder begins where the first one ended.
static void a_rise_counts_from_where_its_own_tick_began(void **state)
{
    (void)state;
    struct lane_swing swing = {0};
    struct peak_bound bound = bound_of_several(0);
    peak_bound_change(&bound, &swing, 100);
    peak_bound_begin_own_tick(&bound, &swing);
    peak_bound_rise(&bound, &swing, 50, 50); // a pair of 50 bytes
    assert_int_equal(peak_bound_error(&bound, 100, 100), 50);
    peak_bound_change(&bound, &swing, 20); // what was seen in part is not counted twice
    assert_int_equal(peak_bound_error(&bound, 120, 120), 30);
    peak_bound_end_tick(&bound, 120);
    peak_bound_change(&bound, &swing, 10);
    assert_int_equal(peak_bound_error(&bound, 130, 130), 20);
}

// A thread that does not know the sizes of what it frees says too much.
static void a_rise_counts_no_further_than_what_was_held(void **state)
{
    (void)state;
    struct lane_swing swing = {0};
    struct peak_bound bound = bound_of_several(0);
    peak_bound_change(&bound, &swing, 100);
    peak_bound_change(&bound, &swing, -100);
    peak_bound_rise(&bound, &swing, 500, 30);
    assert_int_equal(bound.unseen_bytes, 30);
    peak_bound_add_open(&bound, &swing, 500, 70);
    peak_bound_end_tick(&bound, 0);
    assert_int_equal(bound.upper_bytes, 170);
}

static void a_summit_is_certain_only_in_the_tick_in_which_its_own_began(void **state)
{
    (void)state;
    struct lane_swing swing = {0};
    struct peak_bound bound = bound_of_several(1000);
    peak_bound_begin_own_tick(&bound, &swing);
    peak_bound_summit(&bound, &swing, 50);
    peak_bound_rise(&bound, &swing, 50, 50);
    assert_int_equal(peak_bound_error(&bound, 1050, 1000), 0);
    peak_bound_end_tick(&bound, 1000);
    // The same tick of its own: what others have now they need not have had then.
    peak_bound_summit(&bound, &swing, 80);
    peak_bound_rise(&bound, &swing, 80, 80);
    assert_int_equal(peak_bound_error(&bound, 1080, 1000), 30);
    assert_int_equal(peak_bound_error(&bound, 1050, 1000), 30);
}

static void lanes_that_end_or_are_too_many_are_no_trouble(void **state)
{
    (void)state;
    static struct lane_swing swings[PEAK_OPENS_MAX + 2];
    struct peak_bound bound = bound_of_several(0);
    for (unsigned i = 0; i < PEAK_OPENS_MAX + 2; i++) {
        peak_bound_add_open(&bound, &swings[i], 10, 100);
    }
    assert_int_equal(peak_bound_error(&bound, 0, 0), PEAK_OPENS_MAX * 10 + 2 * 100);
    peak_bound_forget(&bound, &swings[3]);
    peak_bound_forget(&bound, &swings[3]);
    assert_int_equal(peak_bound_error(&bound, 0, 0), (PEAK_OPENS_MAX - 1) * 10 + 2 * 100);
    peak_bound_clear_open(&bound);
    assert_int_equal(peak_bound_error(&bound, 0, 0), 0);
    peak_bound_add_open(&bound, &swings[0], UINT64_MAX, UINT64_MAX); // a lie
    assert_int_equal(peak_bound_error(&bound, 0, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bound_holds_for_every_order_within_a_tick),
        cmocka_unit_test(one_lane_alone_is_exact),
        cmocka_unit_test(what_is_held_back_is_bounded_and_no_further_than_need_be),
        cmocka_unit_test(a_rise_counts_from_where_its_own_tick_began),
        cmocka_unit_test(a_rise_counts_no_further_than_what_was_held),
        cmocka_unit_test(a_summit_is_certain_only_in_the_tick_in_which_its_own_began),
        cmocka_unit_test(lanes_that_end_or_are_too_many_are_no_trouble),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
