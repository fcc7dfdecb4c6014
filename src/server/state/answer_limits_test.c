// SPDX-License-Identifier: MIT
// Tests of answer_limits: free turns, none, and a wall clock that has stepped forward by a year; a
// client's disconnection, the server's end, and the deadline.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "server/state/answer_limits.h"

enum {
    HANG_S = 60,
    YEAR_S = 31536000,
};

// Instead of libc's: the wall clock has stepped.
int clock_gettime(clockid_t clock, struct timespec *now)
{
    const int result = (int)syscall(SYS_clock_gettime, clock, now);
    now->tv_sec += clock == CLOCK_REALTIME ? YEAR_S : 0;
    return result;
}

static void turns_are_taken_until_none_is_left(void **state)
{
    (void)state;
    sem_t turns;
    assert_int_equal(sem_init(&turns, 0, 2), 0);
    assert_true(turns_take(&turns, 0));
    assert_true(turns_take(&turns, 0));
    assert_false(turns_take(&turns, 0));
    assert_int_equal(sem_post(&turns), 0);
    assert_true(turns_take(&turns, 0));
    assert_int_equal(sem_destroy(&turns), 0);
}

static void a_step_of_the_wall_clock_makes_no_wait_longer(void **state)
{
    (void)state;
    sem_t turns;
    assert_int_equal(sem_init(&turns, 0, 0), 0);
    (void)alarm(HANG_S); // ends the test, should it wait for a year
    assert_false(turns_take(&turns, 1));
    (void)alarm(0);
    assert_int_equal(sem_destroy(&turns), 0);
}

static void it_goes_on_until_the_client_leaves(void **state)
{
    (void)state;
    atomic_bool is_closing = false;
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    struct disconnect_watch watch = {
        .client_fd = ends[0], .is_closing = &is_closing, .deadline_ms = UINT64_MAX};
    assert_int_equal(disconnect_watch_ask(&watch), ERR_OK);
    assert_int_equal(send(ends[1], "GET", 3, 0), 3); // another request is not a disconnection
    assert_int_equal(disconnect_watch_ask(&watch), ERR_OK);
    assert_int_equal(close(ends[1]), 0);
    assert_int_equal(disconnect_watch_ask(&watch), ERR_CANCELLED);
    assert_false(watch.is_late);
    assert_int_equal(close(ends[0]), 0);
}

static void it_goes_on_until_the_server_ends(void **state)
{
    (void)state;
    atomic_bool is_closing = false;
    struct disconnect_watch watch = {
        .client_fd = -1, .is_closing = &is_closing, .deadline_ms = UINT64_MAX};
    assert_int_equal(disconnect_watch_ask(&watch), ERR_OK);
    atomic_store_explicit(&is_closing, true, memory_order_relaxed); // only one thread
    assert_int_equal(disconnect_watch_ask(&watch), ERR_CANCELLED);
}

static void it_has_its_time(void **state)
{
    (void)state;
    atomic_bool is_closing = false;
    struct disconnect_watch watch = {
        .client_fd = -1, .is_closing = &is_closing, .deadline_ms = clock_monotonic_ms()};
    assert_int_equal(disconnect_watch_ask(&watch), ERR_CANCELLED);
    assert_true(watch.is_late);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_goes_on_until_the_client_leaves),
        cmocka_unit_test(it_goes_on_until_the_server_ends),
        cmocka_unit_test(it_has_its_time),
        cmocka_unit_test(turns_are_taken_until_none_is_left),
        cmocka_unit_test(a_step_of_the_wall_clock_makes_no_wait_longer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
