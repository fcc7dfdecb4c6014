// SPDX-License-Identifier: MIT
// Tests exit_wait with a recorder that answers, with a silent one, and with one whose clock
// stopped.
#include "target/producer/waiting/exit_wait.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/test_support/dead_process.h"
#include "target/producer/waiting/recorder_liveness.h"

#define ATTEMPTS_MAX 100u

struct recorder {
    struct session_header session;
    struct process_slot slot;
    uint32_t answers;     // EXIT_WAIT_DONE: answers as soon as a process waits
    uint32_t stopped_ms;  // for so long neither it nor its clock runs when a process waits
    _Atomic bool is_over; // the process has continued
};

// Advance the clock each millisecond until the process has continued.
static void *run_recorder(void *context)
{
    struct recorder *r = context;
    for (uint32_t ms = 0; ms < r->stopped_ms && !atomic_load(&r->is_over); ms++) {
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    while (!atomic_load(&r->is_over)) {
        atomic_fetch_add(&r->session.clock_ms, 1);
        if (r->answers != 0 && atomic_load(&r->slot.exit_wait) == EXIT_WAIT_WAITING) {
            atomic_store(&r->slot.exit_wait, r->answers);
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
    exit_wait_await(&r->session, &r->slot);
    atomic_store(&r->is_over, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void nobody_asked(void **state)
{
    (void)state;
    struct recorder r = {.answers = 0};
    exit_wait_await(&r.session, &r.slot);
    assert_int_equal(atomic_load(&r.slot.exit_wait), EXIT_WAIT_NO);
    assert_int_equal(atomic_load(&r.session.recorder_wake), 0);
}

static void is_answered_after(uint32_t stopped_ms)
{
    struct recorder r;
    unsigned attempts = 0;
    do { // on a busy machine the recorder's thread may not run before the patience ends
        assert_true(attempts++ < ATTEMPTS_MAX);
        r = (struct recorder){.answers = EXIT_WAIT_DONE,
                              .stopped_ms = stopped_ms,
                              .slot.exit_wait = EXIT_WAIT_WANTED};
        await_beside(&r);
    } while (atomic_load(&r.slot.exit_wait) == EXIT_WAIT_WAITING);
    assert_int_equal(atomic_load(&r.slot.exit_wait), EXIT_WAIT_DONE);
    assert_int_equal(atomic_load(&r.session.recorder_wake), 1);
    assert_int_equal(r.session.counters[NOTE_exit_timeout], 0);
}

static void the_answer_ends_the_wait(void **state)
{
    (void)state;
    is_answered_after(0);
}

// Its process exists, so that it may only lack a processor.
static void a_recorder_that_stands_still_for_a_while_is_waited_for(void **state)
{
    (void)state;
    is_answered_after(2 * LANE_SUSPECT_MS);
}

static void patience_ends(void **state)
{
    (void)state;
    struct recorder r = {.answers = 0, .slot.exit_wait = EXIT_WAIT_WANTED};
    await_beside(&r);
    assert_int_equal(atomic_load(&r.slot.exit_wait), EXIT_WAIT_WAITING);
    assert_int_equal(r.session.counters[NOTE_exit_timeout], 1);
}

static void a_dead_recorder_keeps_nobody(void **state)
{
    (void)state;
    struct recorder r = {.session.recorder_pid = dead_process_pid(),
                         .slot.exit_wait = EXIT_WAIT_WANTED};
    exit_wait_await(&r.session, &r.slot); // its clock does not move
    assert_int_equal(atomic_load(&r.slot.exit_wait), EXIT_WAIT_WAITING);
    assert_int_equal(r.session.counters[NOTE_exit_timeout], 1);
}

static void an_ended_session_keeps_nobody(void **state)
{
    (void)state;
    struct recorder r = {.session.state = SESSION_ENDED, .slot.exit_wait = EXIT_WAIT_WANTED};
    exit_wait_await(&r.session, &r.slot);
    assert_int_equal(atomic_load(&r.slot.exit_wait), EXIT_WAIT_WAITING);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_asked),
        cmocka_unit_test(the_answer_ends_the_wait),
        cmocka_unit_test(a_recorder_that_stands_still_for_a_while_is_waited_for),
        cmocka_unit_test(patience_ends),
        cmocka_unit_test(a_dead_recorder_keeps_nobody),
        cmocka_unit_test(an_ended_session_keeps_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
