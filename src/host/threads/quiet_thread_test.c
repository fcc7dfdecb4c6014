// SPDX-License-Identifier: MIT
// A quiet thread blocks all signals that can be blocked; its starter's mask is unchanged.
#include "host/threads/quiet_thread.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/resource.h>

static void *look_at_mask(void *argument)
{
    (void)pthread_sigmask(SIG_SETMASK, NULL, argument);
    return argument;
}

static void it_blocks_all_and_its_starter_what_it_did(void **state)
{
    (void)state;
    static const int asked[] = {SIGINT, SIGTERM, SIGCHLD, SIGHUP, SIGUSR1};
    sigset_t own;
    (void)sigemptyset(&own);
    (void)sigaddset(&own, SIGUSR1);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &own, NULL), 0);
    sigset_t its;
    (void)sigemptyset(&its);
    pthread_t thread;
    assert_int_equal(quiet_thread_start(&thread, look_at_mask, &its), 0);
    void *answer = NULL;
    assert_int_equal(pthread_join(thread, &answer), 0);
    assert_ptr_equal(answer, &its);
    sigset_t after;
    assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &after), 0);
    for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
        assert_int_equal(sigismember(&its, asked[i]), 1);
        assert_int_equal(sigismember(&after, asked[i]), asked[i] == SIGUSR1);
    }
}

static void a_small_stack_has_no_room(void **state)
{
    (void)state;
    struct rlimit own;
    assert_int_equal(getrlimit(RLIMIT_STACK, &own), 0);
    const struct rlimit small = {.rlim_cur = 256 << 10, .rlim_max = own.rlim_max};
    const struct rlimit usual = {.rlim_cur = 8 << 20, .rlim_max = own.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_STACK, &small), 0);
    assert_false(quiet_thread_has_room());
    assert_int_equal(setrlimit(RLIMIT_STACK, &usual), 0);
    assert_true(quiet_thread_has_room());
    assert_int_equal(setrlimit(RLIMIT_STACK, &own), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_blocks_all_and_its_starter_what_it_did),
        cmocka_unit_test(a_small_stack_has_no_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
