// SPDX-License-Identifier: MIT
// peak_scopes: the same events in their true order, and in the order in which they may be counted.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "aggregate/peak/peak_scopes.h"
#include "base/compiler.h"

enum {
    OWNER = 3,
    OTHER = 5,
    LANE = 7,
    RUNS = 200,
    TICKS = 50,
    EVENTS_MAX = 12, // in a tick, of each thread
    SIZE_MAX_BYTES = 1000,
};

static uint64_t peak(struct peak_scopes *scopes, uint32_t scope)
{
    return peak_scopes_most(scopes, OWNER, LANE, scope);
}

static void scopes_nest_and_overlap(void **state)
{
    (void)state;
    CLEANUP(peak_scopes_release) struct peak_scopes scopes = {0};
    peak_scopes_allocated(&scopes, OWNER, 1, 10); // no thread is followed
    assert_int_equal(peak(&scopes, 0), PEAK_UNKNOWN);
    assert_int_equal(peak_scopes_begin(&scopes, OWNER, LANE, 0), ERR_OK);
    peak_scopes_allocated(&scopes, OWNER, 1, 100);
    assert_int_equal(peak_scopes_begin(&scopes, OWNER, LANE, 7), ERR_OK);
    peak_scopes_freed(&scopes, OWNER, OWNER, 1, 110);
    peak_scopes_allocated(&scopes, OWNER, 1, 60);
    peak_scopes_allocated(&scopes, OTHER, 1, 5000);
    assert_int_equal(peak(&scopes, 0), 100);
    assert_int_equal(peak(&scopes, 7), 0);
    peak_scopes_end(&scopes, OWNER, LANE, 0);
    assert_int_equal(peak(&scopes, 0), PEAK_UNKNOWN);
    peak_scopes_allocated(&scopes, OWNER, 1, 90);
    assert_int_equal(peak(&scopes, 7), 40);
    assert_int_equal(peak_scopes_most(&scopes, OWNER, LANE + 1, 7), PEAK_UNKNOWN);
    peak_scopes_end_thread(&scopes, OWNER, LANE + 1);
    assert_int_equal(peak(&scopes, 7), 40);
    peak_scopes_end_thread(&scopes, OWNER, LANE);
    assert_int_equal(scopes.threads.len, 0);
}

static void threads_are_distinguished(void **state)
{
    (void)state;
    CLEANUP(peak_scopes_release) struct peak_scopes scopes = {0};
    for (uint32_t thread = 0; thread < 50; thread++) {
        assert_int_equal(peak_scopes_begin(&scopes, thread, 100 + thread, 1), ERR_OK);
    }
    for (uint32_t thread = 0; thread < 50; thread += 2) {
        peak_scopes_end(&scopes, thread, 100 + thread, 1);
    }
    for (uint32_t thread = 0; thread < 50; thread++) {
        peak_scopes_allocated(&scopes, thread, 1, thread);
    }
    for (uint32_t thread = 0; thread < 50; thread++) {
        const uint64_t most = peak_scopes_most(&scopes, thread, 100 + thread, 1);
        assert_int_equal(most, thread % 2 == 0 ? PEAK_UNKNOWN : thread);
    }
}

static void what_is_no_scope_is_refused(void **state)
{
    (void)state;
    CLEANUP(peak_scopes_release) struct peak_scopes scopes = {0};
    assert_int_equal(peak_scopes_begin(&scopes, OWNER, LANE, LANE_SCOPES_MAX), ERR_CORRUPT);
    assert_int_equal(peak_scopes_most(&scopes, OWNER, LANE, 255), PEAK_UNKNOWN);
    peak_scopes_end(&scopes, OWNER, LANE, 255);
    // An entry that two threads share follows the first.
    assert_int_equal(peak_scopes_begin(&scopes, OWNER, LANE, 0), ERR_OK);
    assert_int_equal(peak_scopes_begin(&scopes, OWNER, LANE + 1, 0), ERR_OK);
    assert_int_equal(peak_scopes_most(&scopes, OWNER, LANE + 1, 0), PEAK_UNKNOWN);
}

// Events in one tick, of the thread itself and of the other one; negative: a free.
struct tick {
    int64_t own[EVENTS_MAX];
    int64_t other[EVENTS_MAX];
    int own_count;
    int other_count;
};

struct truth {
    int64_t live;
    int64_t most;
    int64_t freed_elsewhere_most; // in one tick
};

// Run a tick in its true order: a random mixture of both threads' events; each free has a live
// block.
static void live_through(struct tick *tick, struct truth *truth)
{
    int64_t elsewhere = 0;
    *tick = (struct tick){0};
    while (tick->own_count < EVENTS_MAX && tick->other_count < EVENTS_MAX && rand() % 16 != 0) {
        const int64_t bytes = 1 + rand() % SIZE_MAX_BYTES;
        const int who = rand() % 3;
        if (who == 0 || truth->live < bytes) {
            tick->own[tick->own_count++] = bytes;
            truth->live += bytes;
            truth->most = truth->live > truth->most ? truth->live : truth->most;
            continue;
        }
        truth->live -= bytes;
        if (who == 1) {
            tick->own[tick->own_count++] = -bytes;
        } else {
            tick->other[tick->other_count++] = -bytes;
            elsewhere += bytes;
        }
    }
    if (elsewhere > truth->freed_elsewhere_most) {
        truth->freed_elsewhere_most = elsewhere;
    }
}

static void aggregator_own(struct peak_scopes *scopes, const struct tick *tick, uint64_t ms)
{
    for (int i = 0; i < tick->own_count; i++) {
        if (tick->own[i] > 0) {
            peak_scopes_allocated(scopes, OWNER, ms, (uint64_t)tick->own[i]);
        } else {
            peak_scopes_freed(scopes, OWNER, OWNER, ms, (uint64_t)-tick->own[i]);
        }
    }
}

static void aggregator_other(struct peak_scopes *scopes, const struct tick *tick, uint64_t ms)
{
    for (int i = 0; i < tick->other_count; i++) {
        peak_scopes_freed(scopes, OWNER, rand() % 4 == 0 ? UINT32_MAX : OTHER, ms,
                          (uint64_t)-tick->other[i]);
    }
}

static void frees_by_others_never_make_it_too_low(void **state)
{
    (void)state;
    for (unsigned run = 0; run < RUNS; run++) {
        srand(run);
        CLEANUP(peak_scopes_release) struct peak_scopes scopes = {0};
        struct truth truth = {0};
        assert_int_equal(peak_scopes_begin(&scopes, OWNER, LANE, 2), ERR_OK);
        for (uint64_t ms = 1; ms <= TICKS; ms++) {
            struct tick tick;
            live_through(&tick, &truth);
            if (rand() % 2 == 0) {
                aggregator_own(&scopes, &tick, ms);
                aggregator_other(&scopes, &tick, ms);
            } else {
                aggregator_other(&scopes, &tick, ms);
                aggregator_own(&scopes, &tick, ms);
            }
        }
        assert_true(peak(&scopes, 2) >= (uint64_t)truth.most);
        assert_true(peak(&scopes, 2) <= (uint64_t)(truth.most + truth.freed_elsewhere_most));
    }
}

// One lane was read far ahead of the other.
static void lanes_that_drift_apart_never_make_it_too_low(void **state)
{
    (void)state;
    static struct tick ticks[TICKS + 1];
    for (unsigned run = 0; run < RUNS; run++) {
        srand(run);
        CLEANUP(peak_scopes_release) struct peak_scopes scopes = {0};
        struct truth truth = {0};
        assert_int_equal(peak_scopes_begin(&scopes, OWNER, LANE, 2), ERR_OK);
        const uint64_t ahead = 1 + run % TICKS;
        for (uint64_t ms = 1; ms <= TICKS; ms++) {
            live_through(&ticks[ms], &truth);
            aggregator_other(&scopes, &ticks[ms], ms);
            if (ms > ahead) {
                aggregator_own(&scopes, &ticks[ms - ahead], ms - ahead);
            }
        }
        for (uint64_t ms = TICKS - ahead + 1; ms <= TICKS; ms++) {
            aggregator_own(&scopes, &ticks[ms], ms);
        }
        assert_true(peak(&scopes, 2) >= (uint64_t)truth.most);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scopes_nest_and_overlap),
        cmocka_unit_test(threads_are_distinguished),
        cmocka_unit_test(what_is_no_scope_is_refused),
        cmocka_unit_test(frees_by_others_never_make_it_too_low),
        cmocka_unit_test(lanes_that_drift_apart_never_make_it_too_low),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
