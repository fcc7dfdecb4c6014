// SPDX-License-Identifier: MIT
// Tests lane_backlog with a recorder that recycles lanes, with one that does not, and with none.
#include "target/producer/waiting/lane_backlog.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/sys.h"
#include "base/test_support/dead_process.h"

// A wait ends after LANE_BACKLOG_WAIT_MS in any case. A thread that has no processor for so long,
// on a busy machine, has not done its part by then: such a wait shows nothing, and is tried again.
#define ATTEMPTS 8

struct recorder {
    struct session_header session;
    _Atomic bool is_over; // the thread has its turn
    bool recycles;
};

static uint32_t waits_of(const struct recorder *r)
{
    return (uint32_t)atomic_load(&r->session.counters[NOTE_producer_waits]);
}

// Advance the clock each millisecond until the thread has its turn. Recycle lanes when it has woken
// the recorder.
static void *run_recorder(void *context)
{
    struct recorder *r = context;
    while (!atomic_load(&r->is_over)) {
        atomic_fetch_add(&r->session.clock_ms, 1);
        if (r->recycles && atomic_load(&r->session.recorder_wake) > 0) {
            atomic_store(&r->session.recycled_lanes, atomic_load(&r->session.ended_lanes));
            (void)sys_futex_wake(&r->session.recycled_lanes, 1); // none may sleep
        }
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return NULL;
}

static void await_beside(struct recorder *r)
{
    pthread_t thread;
    r->session.recorder_pid = (uint32_t)getpid();
    assert_int_equal(pthread_create(&thread, NULL, run_recorder, r), 0);
    lane_backlog_await(&r->session, 0);
    atomic_store(&r->is_over, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void few_unread_lanes_keep_nobody(void **state)
{
    (void)state;
    static const struct {
        uint32_t ended;
        uint32_t recycled;
    } cases[] = {{0, 0},
                 {LANES_UNREAD_MAX, 0},
                 {LANES_UNREAD_MAX - 10, UINT32_MAX - 8}, // the counts wrap around
                 {5, 6},                                  // the recorder's is ahead
                 {0, LANES_UNREAD_MAX + 1}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct recorder r = {
            .session = {.ended_lanes = cases[i].ended, .recycled_lanes = cases[i].recycled}};
        lane_backlog_await(&r.session, 0);
        assert_int_equal(waits_of(&r), 0);
        assert_int_equal(atomic_load(&r.session.recorder_wake), 0);
    }
}

static void the_recorder_is_woken_and_ends_the_wait(void **state)
{
    (void)state;
    struct recorder r;
    int attempt = 0;
    do {
        r = (struct recorder){
            .recycles = true,
            .session = {.ended_lanes = 2, .recycled_lanes = 1 - LANES_UNREAD_MAX}};
        await_beside(&r);
    } while (session_unread_lanes(&r.session) > 0 && ++attempt < ATTEMPTS);
    assert_int_equal(waits_of(&r), 1);
    assert_true(atomic_load(&r.session.recorder_wake) > 0);
    assert_int_equal(atomic_load(&r.session.state), SESSION_STARTING);
    assert_int_equal(session_unread_lanes(&r.session), 0);
}

static void a_recorder_that_only_lives_ends_the_wait_too(void **state)
{
    (void)state;
    struct recorder r = {.session = {.ended_lanes = LANES_UNREAD_MAX + 1}};
    await_beside(&r);
    assert_int_equal(waits_of(&r), 1);
    assert_int_equal(atomic_load(&r.session.state), SESSION_STARTING);
    assert_true(session_unread_lanes(&r.session) > LANES_UNREAD_MAX);
}

static void a_dead_recorder_keeps_nobody(void **state)
{
    (void)state;
    struct recorder r;
    int attempt = 0;
    do { // its clock does not move
        r = (struct recorder){
            .session = {.ended_lanes = LANES_UNREAD_MAX + 1, .recorder_pid = dead_process_pid()}};
        lane_backlog_await(&r.session, 0);
    } while (atomic_load(&r.session.state) != SESSION_ABANDONED && ++attempt < ATTEMPTS);
    assert_int_equal(atomic_load(&r.session.state), SESSION_ABANDONED);
    assert_int_equal(atomic_load(&r.session.counters[NOTE_lane_timeout]), 1);
}

static void an_ended_session_keeps_nobody(void **state)
{
    (void)state;
    struct recorder r = {.session = {.ended_lanes = LANES_UNREAD_MAX + 1, .state = SESSION_ENDED}};
    lane_backlog_await(&r.session, 0);
    assert_int_equal(waits_of(&r), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_unread_lanes_keep_nobody),
        cmocka_unit_test(the_recorder_is_woken_and_ends_the_wait),
        cmocka_unit_test(a_recorder_that_only_lives_ends_the_wait_too),
        cmocka_unit_test(a_dead_recorder_keeps_nobody),
        cmocka_unit_test(an_ended_session_keeps_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
