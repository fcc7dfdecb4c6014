// SPDX-License-Identifier: MIT
// urgent_turns: the priority of a thread in its turns, between and after them, and of what it
// starts. Without permission nothing changes; then that is the test.
#include "host/threads/urgent_turns.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"

static int policy(void)
{
    return sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
}

static long sleeps(void)
{
    struct rusage usage = {0};
    assert_int_equal(getrusage(RUSAGE_THREAD, &usage), 0);
    return usage.ru_nvcsw;
}

static void work_for(uint64_t time_ns)
{
    const uint64_t end_ns = clock_monotonic_ns() + time_ns;
    while (clock_monotonic_ns() < end_ns) {
    }
}

static void a_turn_is_urgent_and_ends(void **state)
{
    (void)state;
    struct urgent_turns turns = {0};
    const bool may = urgent_turns_begin(&turns);
    assert_int_equal(policy(), may ? SCHED_FIFO : SCHED_OTHER);
    assert_int_equal(urgent_turns_begin(&turns), may);
    urgent_turns_end(&turns);
    urgent_turns_end(&turns);
    assert_int_equal(policy(), SCHED_OTHER);
}

static void who_waited_for_long_is_late_for_a_while(void **state)
{
    (void)state;
    struct urgent_turns turns = {0};
    const uint64_t due_ns = NS_PER_S;
    assert_false(urgent_turns_is_late(&turns, due_ns));
    urgent_turns_note_wait(&turns, due_ns, due_ns - NS_PER_MS); // something else woke it
    urgent_turns_note_wait(&turns, due_ns, due_ns + 3 * NS_PER_MS);
    assert_false(urgent_turns_is_late(&turns, due_ns + 3 * NS_PER_MS));
    urgent_turns_note_wait(&turns, due_ns, due_ns + 5 * NS_PER_MS);
    assert_true(urgent_turns_is_late(&turns, due_ns + 5 * NS_PER_MS));
    urgent_turns_note_wait(&turns, due_ns + 10 * NS_PER_MS, due_ns + 10 * NS_PER_MS);
    assert_true(urgent_turns_is_late(&turns, due_ns + 9 * NS_PER_S));
    assert_false(urgent_turns_is_late(&turns, due_ns + 11 * NS_PER_S));
    assert_int_equal(policy(), SCHED_OTHER); // that alone changes nothing
}

static void others_have_the_processor_after_a_turn(void **state)
{
    (void)state;
    struct urgent_turns turns = {0};
    const bool may = urgent_turns_begin(&turns);
    const long before = sleeps();
    work_for(6 * NS_PER_MS);
    const long worked = sleeps();
    urgent_turns_spare_others(&turns);
    assert_true(!may || worked == before); // nothing comes before it
    assert_int_equal(sleeps() > worked, may);
    work_for(6 * NS_PER_MS);
    urgent_turns_begin_next(&turns); // it says that it has slept
    const long began = sleeps();
    urgent_turns_spare_others(&turns);
    assert_int_equal(sleeps(), began);
    urgent_turns_end(&turns);
    urgent_turns_spare_others(&turns);
    assert_int_equal(sleeps(), began);
}

static void *policy_of_thread(void *context)
{
    *(int *)context = policy();
    return NULL;
}

static void what_it_starts_is_ordinary(void **state)
{
    (void)state;
    struct urgent_turns turns = {0};
    int of_thread = -1;
    int status = -1;
    pthread_t thread;
    (void)urgent_turns_begin(&turns);
    assert_int_equal(pthread_create(&thread, NULL, policy_of_thread, &of_thread), 0);
    const pid_t child = fork();
    if (child == 0) {
        _exit(policy() == SCHED_OTHER ? 0 : 1);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    urgent_turns_end(&turns);
    assert_int_equal(of_thread, SCHED_OTHER);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_turn_is_urgent_and_ends),
        cmocka_unit_test(who_waited_for_long_is_late_for_a_while),
        cmocka_unit_test(others_have_the_processor_after_a_turn),
        cmocka_unit_test(what_it_starts_is_ordinary),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
