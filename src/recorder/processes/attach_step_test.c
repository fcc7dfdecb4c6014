// SPDX-License-Identifier: MIT
// Tests of attach_step and page_probe: results, steps that are left, and processes that have ended.
#include "recorder/processes/attach_step.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "recorder/aside/aside.h"
#include "recorder/processes/page_probe.h"

enum {
    NO_PROCESS = INT32_MAX,
    DEADLINE_MS = 60000,
};

static struct attach_step *begin_open(struct attach **attach)
{
    *attach = calloc(1, sizeof(**attach));
    assert_non_null(*attach);
    const struct attach_step wanted = {.kind = STEP_OPEN, .pid = NO_PROCESS, .attach = *attach};
    struct attach_step *step = attach_step_start(&wanted);
    assert_non_null(step);
    return step;
}

static void a_step_has_a_result(void **state)
{
    (void)state;
    struct attach *attach;
    struct attach_step *step = begin_open(&attach);
    assert_true(attach_step_await(step, DEADLINE_MS));
    assert_int_equal(step->result, ERR_NOT_FOUND);
    assert_string_equal(err_text(&step->trouble), "there is no process 2147483647");
    assert_false(step->is_known);
    assert_false(attach_step_is_late(step));
    assert_false(attach_step_leave(step)); // it is over
    attach_step_free(step);
    attach_release(attach);
    free(attach);
    attach_step_free(NULL);
}

// Let no thread start, or let them again: no stack of this size fits an address space.
static void forbid_threads(bool is_forbidden)
{
    static size_t usual_bytes;
    pthread_attr_t attributes;
    assert_int_equal(pthread_getattr_default_np(&attributes), 0);
    if (is_forbidden) {
        assert_int_equal(pthread_attr_getstacksize(&attributes, &usual_bytes), 0);
    }
    assert_int_equal(
        pthread_attr_setstacksize(&attributes, is_forbidden ? (size_t)1 << 47 : usual_bytes), 0);
    assert_int_equal(pthread_setattr_default_np(&attributes), 0);
    assert_int_equal(pthread_attr_destroy(&attributes), 0);
}

static void a_step_without_a_thread_is_over(void **state)
{
    (void)state;
    struct attach *attach;
    forbid_threads(true);
    struct attach_step *step = begin_open(&attach);
    forbid_threads(false);
    assert_true(attach_step_is_over(step));
    assert_int_equal(step->result, ERR_IO);
    assert_string_equal(step->trouble.text,
                        "cannot start a thread: Resource temporarily unavailable");
    assert_false(attach_step_leave(step));
    attach_step_free(step);
    attach_release(attach);
    free(attach);
}

// The first of the two has the step; a left one frees itself and `attach`. One that cannot be left
// may still wake the recorder, and is over soon.
static void a_step_is_left_or_over(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++) {
        struct attach *attach;
        struct attach_step *step = begin_open(&attach);
        if (!attach_step_leave(step)) {
            assert_true(attach_step_await(step, DEADLINE_MS));
            attach_step_free(step);
            attach_release(attach);
            free(attach);
        }
    }
}

struct work {
    _Atomic bool is_over;
};

static void work_until_over(void *context)
{
    const struct work *work = context;
    while (!atomic_load_explicit(&work->is_over, memory_order_relaxed)) {
    }
}

// A slow machine: the step has worked for two minutes, and later for eleven.
static void a_step_that_works_is_not_late_for_long(void **state)
{
    const uint64_t minute_ms = 60000;
    (void)state;
    struct work work = {0};
    const struct aside_work wanted = {.run = work_until_over, .context = &work};
    struct aside *aside = aside_start(&wanted);
    assert_non_null(aside);
    const uint64_t now_ms = clock_monotonic_ms();
    const struct attach_step slow = {.aside = aside, .begun_ms = now_ms - 2 * minute_ms};
    assert_false(attach_step_is_late(&slow));
    const struct attach_step endless = {.aside = aside, .begun_ms = now_ms - 11 * minute_ms};
    assert_true(attach_step_is_late(&endless));
    atomic_store_explicit(&work.is_over, true, memory_order_relaxed);
    aside_free(aside);
}

static void files_that_answer_are_touched(void **state)
{
    (void)state;
    assert_int_equal(page_probe_touch(getpid()), ERR_OK);
    assert_int_equal(page_probe_touch(NO_PROCESS), ERR_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_has_a_result),
        cmocka_unit_test(a_step_without_a_thread_is_over),
        cmocka_unit_test(a_step_that_works_is_not_late_for_long),
        cmocka_unit_test(files_that_answer_are_touched),
        cmocka_unit_test(a_step_is_left_or_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
