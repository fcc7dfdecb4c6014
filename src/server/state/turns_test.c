// SPDX-License-Identifier: MIT
// turns: free ones, none, and a wall clock that has stepped forward by a year.
#include "server/state/turns.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(turns_are_taken_until_none_is_left),
        cmocka_unit_test(a_step_of_the_wall_clock_makes_no_wait_longer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
