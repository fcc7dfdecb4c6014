// SPDX-License-Identifier: MIT
// Tests of hold_budget: what threads hold together, at all times of a pass.
#include "recorder/lanes/hold_budget.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/hash.h"
#include "base/minmax.h"

enum {
    THREADS_MAX = 64,
    PEAK = 1 << 20,
    SHARE = PEAK / 256
};

struct fixture {
    struct hold_budget budget;
    struct lane_budget lanes[THREADS_MAX];
    struct nursery nurseries[THREADS_MAX];
    bool is_empty[THREADS_MAX];
    uint32_t count;
};

// A tick of a thread.
static void tick(struct fixture *f, uint32_t thread)
{
    struct nursery *n = &f->nurseries[thread];
    n->budget_bytes = f->budget.each_bytes;
    n->budget_count++;
    f->is_empty[thread] = false;
}

// Return what the threads may have held together by the recorder's knowledge.
static uint64_t pass(struct fixture *f, bool leaves_events)
{
    hold_budget_begin_pass(&f->budget, leaves_events);
    for (uint32_t i = 0; i < f->count; i++) {
        hold_budget_add(&f->budget, &f->lanes[i], &f->nurseries[i], f->is_empty[i]);
    }
    hold_budget_end_pass(&f->budget, PEAK, f->count > 1);
    return f->budget.held_at_most_bytes;
}

static uint64_t sum_of_budgets(const struct fixture *f)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < f->count; i++) {
        bytes += f->is_empty[i] ? 0 : f->nurseries[i].budget_bytes;
    }
    return bytes;
}

static void the_share_depends_on_the_peak(void **state)
{
    (void)state;
    static const struct {
        uint64_t peak_bytes;
        bool is_shared;
        uint64_t each_bytes; // half: another thread may wake up
    } cases[] = {
        {0, true, 0},           {6400, true, 50},        {64 << 10, true, 512},
        {256 << 10, true, 512}, {512 << 10, true, 1024}, {1 << 30, true, 2 << 20},
        {1 << 30, false, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct hold_budget budget = {0};
        hold_budget_begin_pass(&budget, false);
        hold_budget_end_pass(&budget, cases[i].peak_bytes, cases[i].is_shared);
        assert_int_equal(budget.each_bytes, cases[i].each_bytes);
    }
}

// Threads wake up one after the other, and keep what they hold while they sleep.
static void threads_that_sleep_keep_their_budget(void **state)
{
    (void)state;
    struct fixture f = {.count = 32};
    pass(&f, false);
    for (uint32_t i = 0; i < f.count; i++) {
        tick(&f, i);
        pass(&f, false);
        assert_in_range(sum_of_budgets(&f), 1, SHARE * 5 / 4); // the recorder sees a sleep late
    }
    assert_int_equal(f.lanes[0].bytes, SHARE / 2);
    for (uint32_t i = 0; i < f.count; i++) { // their blocks were freed
        f.is_empty[i] = true;
    }
    for (uint32_t i = 0; i < 64; i++) {
        pass(&f, false);
    }
    assert_int_equal(f.budget.each_bytes, SHARE / 2);
}

// All threads that are awake share, also some passes after they were last awake together.
static void threads_that_are_awake_share(void **state)
{
    (void)state;
    struct fixture f = {.count = 16};
    pass(&f, false);
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < f.count; i++) {
            tick(&f, i);
        }
        pass(&f, false);
        assert_int_equal(f.budget.each_bytes, SHARE / 16);
    }
    assert_int_equal(sum_of_budgets(&f), SHARE);
    tick(&f, 0); // the others sleep, and their budgets are taken
    pass(&f, false);
    assert_in_range(f.budget.each_bytes, 1, SHARE / 16);
}

// Whatever threads do, the sum of their budgets counts at any time of a pass.
static void budgets_are_never_more_than_the_recorder_says(void **state)
{
    (void)state;
    for (uint32_t seed = 0; seed < 200; seed++) {
        struct fixture f = {.count = 2 + seed % (THREADS_MAX - 1)};
        uint64_t random = seed;
        pass(&f, false);
        for (uint32_t round = 0; round < 100; round++) {
            uint64_t most_bytes = sum_of_budgets(&f);
            random = hash_mix(random + 1);
            for (uint32_t ticks = random % 4 * f.count / 3; ticks > 0; ticks--) {
                random = hash_mix(random + 1);
                const uint32_t thread = (uint32_t)(random % f.count);
                tick(&f, thread);
                most_bytes = max_u64(most_bytes, sum_of_budgets(&f));
                f.is_empty[thread] = random >> 32 & 1;
            }
            assert_true(pass(&f, false) >= most_bytes);
        }
    }
}

// Events that a pass leaves to the next one keep their budgets, also those of ended threads.
static void left_events_keep_their_budgets(void **state)
{
    (void)state;
    struct fixture f = {.count = 2};
    pass(&f, false);
    tick(&f, 0);
    assert_int_equal(pass(&f, true), SHARE / 2);
    f.is_empty[0] = true;
    assert_int_equal(pass(&f, true), SHARE / 2);
    assert_int_equal(pass(&f, true), SHARE / 2);
    hold_budget_end_thread(&f.budget, &f.lanes[0]);
    f.lanes[0] = (struct lane_budget){.count = f.lanes[0].count};
    assert_int_equal(pass(&f, true), SHARE / 2);
    assert_int_equal(pass(&f, false), SHARE / 2);
    assert_int_equal(pass(&f, false), 0);
}

// A thread may write anything into its nursery, and may have had budgets that no pass saw.
static void a_budget_is_at_most_what_was_allowed(void **state)
{
    (void)state;
    struct fixture f = {.count = 2};
    pass(&f, false);
    tick(&f, 0);
    f.nurseries[0].budget_bytes = UINT64_MAX;
    assert_int_equal(pass(&f, false), SHARE / 2);
    tick(&f, 0);
    tick(&f, 0);
    f.nurseries[0].budget_bytes = 0;
    assert_int_equal(pass(&f, false), SHARE / 2);
    assert_int_equal(pass(&f, false), SHARE / 2); // its events may precede the latest pass
    assert_int_equal(pass(&f, false), 0);
}

// What threads may hold has shrunk since a thread had several ticks: it may have had the larger
// budget in between.
static void a_missed_budget_counts_with_what_was_allowed_before(void **state)
{
    (void)state;
    struct fixture f = {.count = 3};
    pass(&f, false);
    tick(&f, 1);
    pass(&f, false);
    assert_int_equal(f.budget.each_bytes, SHARE / 2);
    pass(&f, false); // the thread sleeps, with half of all
    assert_int_equal(f.budget.each_bytes, SHARE / 4);
    f.nurseries[0].budget_count += 2;
    assert_int_equal(pass(&f, false), SHARE / 2 + SHARE / 2);
    f.nurseries[2].budget_count += 2; // now the larger one is too long ago
    assert_int_equal(pass(&f, false), SHARE / 2 + SHARE / 2 + SHARE / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_share_depends_on_the_peak),
        cmocka_unit_test(threads_that_sleep_keep_their_budget),
        cmocka_unit_test(threads_that_are_awake_share),
        cmocka_unit_test(budgets_are_never_more_than_the_recorder_says),
        cmocka_unit_test(left_events_keep_their_budgets),
        cmocka_unit_test(a_budget_is_at_most_what_was_allowed),
        cmocka_unit_test(a_missed_budget_counts_with_what_was_allowed_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
