// SPDX-License-Identifier: MIT
// Tests of aside: work that is over, that is left, and that cannot be started.
#include "recorder/aside/aside.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "base/clock.h"

enum {
    DEADLINE_S = 60,
};

struct errand {
    sem_t may_end;
    sem_t was_released;
    int runs;
    int told;
};

static void run(void *context)
{
    struct errand *errand = context;
    while (sem_wait(&errand->may_end) != 0) {
    }
    errand->runs++;
}

static void release(void *context)
{
    struct errand *errand = context;
    (void)sem_post(&errand->was_released);
}

static void tell(void *context)
{
    struct errand *errand = context;
    errand->told++;
}

static struct aside *start(struct errand *errand)
{
    *errand = (struct errand){0};
    assert_int_equal(sem_init(&errand->may_end, 0, 0), 0);
    assert_int_equal(sem_init(&errand->was_released, 0, 0), 0);
    const struct aside_work work = {
        .run = run, .release = release, .tell = tell, .context = errand};
    struct aside *aside = aside_start(&work);
    assert_non_null(aside);
    return aside;
}

static void work_that_is_over_is_the_starters(void **state)
{
    (void)state;
    struct errand errand;
    struct aside *aside = start(&errand);
    assert_false(aside_is_over(aside));
    assert_false(aside_await(aside, NS_PER_MS));
    assert_int_equal(sem_post(&errand.may_end), 0);
    assert_true(aside_await(aside, DEADLINE_S * NS_PER_S));
    assert_true(aside_is_over(aside));
    assert_false(aside_leave(aside));
    aside_free(aside);
    assert_int_equal(errand.runs, 1);
    assert_int_equal(errand.told, 1);
    assert_int_equal(sem_trywait(&errand.was_released), -1);
    aside_free(NULL);
}

static void work_that_is_left_is_its_threads(void **state)
{
    (void)state;
    struct errand errand;
    struct aside *aside = start(&errand);
    assert_true(aside_leave(aside));
    assert_int_equal(sem_post(&errand.may_end), 0);
    while (sem_wait(&errand.was_released) != 0) {
    }
    assert_int_equal(errand.runs, 1);
    assert_int_equal(errand.told, 0);
}

static void do_nothing(void *context)
{
    (void)context;
}

static void note_thread(void *context)
{
    *(pthread_t *)context = pthread_self();
}

// And one that is left then has the work that was given last.
static void a_thread_takes_further_work(void **state)
{
    (void)state;
    pthread_t threads[3];
    struct aside *aside = NULL;
    for (int i = 0; i < 3; i++) {
        const struct aside_work work = {.run = note_thread, .context = threads + i};
        if (aside == NULL) {
            aside = aside_start(&work);
            assert_non_null(aside);
        } else {
            aside_again(aside, &work);
        }
        assert_true(aside_await(aside, DEADLINE_S * NS_PER_S));
        assert_true(pthread_equal(threads[0], threads[i]));
    }
    struct errand errand = {0};
    assert_int_equal(sem_init(&errand.may_end, 0, 0), 0);
    assert_int_equal(sem_init(&errand.was_released, 0, 0), 0);
    const struct aside_work last = {
        .run = run, .release = release, .tell = tell, .context = &errand};
    aside_again(aside, &last);
    assert_true(aside_leave(aside));
    assert_int_equal(sem_post(&errand.may_end), 0);
    while (sem_wait(&errand.was_released) != 0) {
    }
    assert_int_equal(errand.runs, 1);
    assert_int_equal(errand.told, 0);
}

static void spin(void *context)
{
    const atomic_bool *may_end = context;
    while (!atomic_load(may_end)) {
    }
}

// Whatever the machine does meanwhile, it may have a processor.
static void work_that_could_go_on_is_not_held_up(void **state)
{
    (void)state;
    atomic_bool may_end = false;
    const uint64_t end_ns = clock_monotonic_ns() + 60 * NS_PER_MS;
    const struct aside_work work = {.run = spin, .context = &may_end};
    struct aside *aside = aside_start(&work);
    assert_non_null(aside);
    while (clock_monotonic_ns() < end_ns) {
        assert_int_equal(aside_held_up_ns(aside), 0);
    }
    atomic_store(&may_end, true);
    assert_true(aside_await(aside, DEADLINE_S * NS_PER_S));
    aside_free(aside);
}

static void work_that_waits_is_held_up_from_its_beginning(void **state)
{
    (void)state;
    struct errand errand;
    const uint64_t begun_ns = clock_monotonic_ns();
    struct aside *aside = start(&errand);
    for (int i = 0; i < 2; i++) {
        while (aside_held_up_ns(aside) < 20 * NS_PER_MS) {
            clock_sleep_ns(NS_PER_MS);
        }
        assert_true(aside_held_up_ns(aside) <= clock_monotonic_ns() - begun_ns);
        assert_int_equal(sem_post(&errand.may_end), 0);
        assert_true(aside_await(aside, DEADLINE_S * NS_PER_S));
        if (i == 0) { // the wait for further work is not the work's
            clock_sleep_ns(60 * NS_PER_MS);
            const struct aside_work work = {.run = run, .context = &errand};
            aside_again(aside, &work);
            assert_true(aside_held_up_ns(aside) < 20 * NS_PER_MS);
        }
    }
    aside_free(aside);
}

static long sleeps_of_this_thread(void)
{
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_THREAD, &usage), 0);
    return usage.ru_nvcsw;
}

// A recorder that rests counts its wakes.
static void the_starter_sleeps_once(void **state)
{
    enum {
        WORKS = 400
    };
    (void)state;
    const struct aside_work work = {.run = do_nothing, .tell = do_nothing};
    const long before = sleeps_of_this_thread();
    for (int i = 0; i < WORKS; i++) {
        struct aside *aside = aside_start(&work);
        assert_non_null(aside);
        assert_true(aside_await(aside, DEADLINE_S * NS_PER_S));
        aside_free(aside);
    }
    assert_in_range(sleeps_of_this_thread() - before, 0, WORKS + WORKS / 10);
}

// No stack of this size fits an address space.
static void without_a_thread_nothing_is_started(void **state)
{
    (void)state;
    struct errand errand = {0};
    pthread_attr_t attributes;
    size_t usual_bytes = 0;
    const struct aside_work work = {.run = run, .context = &errand};
    assert_int_equal(pthread_getattr_default_np(&attributes), 0);
    assert_int_equal(pthread_attr_getstacksize(&attributes, &usual_bytes), 0);
    assert_int_equal(pthread_attr_setstacksize(&attributes, (size_t)1 << 47), 0);
    assert_int_equal(pthread_setattr_default_np(&attributes), 0);
    assert_null(aside_start(&work));
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(pthread_attr_setstacksize(&attributes, usual_bytes), 0);
    assert_int_equal(pthread_setattr_default_np(&attributes), 0);
    assert_int_equal(pthread_attr_destroy(&attributes), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_that_is_over_is_the_starters),
        cmocka_unit_test(work_that_is_left_is_its_threads),
        cmocka_unit_test(a_thread_takes_further_work),
        cmocka_unit_test(work_that_could_go_on_is_not_held_up),
        cmocka_unit_test(work_that_waits_is_held_up_from_its_beginning),
        cmocka_unit_test(the_starter_sleeps_once),
        cmocka_unit_test(without_a_thread_nothing_is_started),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
