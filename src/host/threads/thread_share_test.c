// SPDX-License-Identifier: MIT
// Tests of thread_share. The oracle for the time that a thread ran is its own clock.
#include "host/threads/thread_share.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"

static struct thread_share share_of(pid_t thread_id)
{
    struct thread_share share;
    assert_true(thread_share_read(thread_id, &share));
    return share;
}

static void a_thread_that_works_can_run(void **state)
{
    (void)state;
    const uint64_t before_ns = clock_thread_cpu_ns();
    const struct thread_share before = share_of(gettid());
    while (clock_thread_cpu_ns() < before_ns + 30 * NS_PER_MS) {
    }
    (void)sched_yield(); // the kernel counts at a switch or a tick
    const struct thread_share after = share_of(gettid());
    const uint64_t after_ns = clock_thread_cpu_ns();
    assert_true(after.can_run);
    assert_in_range(after.ran_ns - before.ran_ns, 15 * NS_PER_MS,
                    after_ns - before_ns + 10 * NS_PER_MS);
}

static int g_pipe[2];
static _Atomic pid_t g_reader;

static void *read_byte(void *unused)
{
    char byte;
    (void)unused;
    atomic_store(&g_reader, gettid());
    (void)!read(g_pipe[0], &byte, 1);
    return NULL;
}

static void a_thread_that_waits_for_something_else_can_not(void **state)
{
    (void)state;
    pthread_t thread;
    assert_int_equal(pipe(g_pipe), 0);
    assert_int_equal(pthread_create(&thread, NULL, read_byte, NULL), 0);
    while (atomic_load(&g_reader) == 0 || share_of(atomic_load(&g_reader)).can_run) {
        (void)sched_yield();
    }
    const struct thread_share before = share_of(atomic_load(&g_reader));
    clock_sleep_ns(30 * NS_PER_MS); // what is measured is time
    const struct thread_share after = share_of(atomic_load(&g_reader));
    assert_false(after.can_run);
    assert_int_equal(after.ran_ns, before.ran_ns);
    assert_int_equal(after.queued_ns, before.queued_ns);
    assert_int_equal(write(g_pipe[1], "", 1), 1);
    assert_int_equal(pthread_join(thread, NULL), 0);
    (void)close(g_pipe[0]);
    (void)close(g_pipe[1]);
}

static void others_have_no_account_here(void **state)
{
    (void)state;
    struct thread_share share;
    assert_false(thread_share_read(getppid(), &share));
    assert_false(thread_share_read(0, &share));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_that_works_can_run),
        cmocka_unit_test(a_thread_that_waits_for_something_else_can_not),
        cmocka_unit_test(others_have_no_account_here),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
