// SPDX-License-Identifier: MIT
// Tests of kept_results.c: a result is built once and shared, also by threads; a cancelled build is
// begun anew; a result may be built of another one.
#include "host/threads/kept_results.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/compiler.h"

enum {
    THREADS = 8
};

static atomic_int builds;
static atomic_int releases;
static bool is_cancelled;

static enum err build_one(const void *source, void *out)
{
    (void)source;
    atomic_fetch_add(&builds, 1);
    if (is_cancelled) {
        return ERR_CANCELLED;
    }
    *(int *)out = 42;
    return ERR_OK;
}

static void release_one(void *result)
{
    assert_int_not_equal(*(int *)result, 0);
    atomic_fetch_add(&releases, 1);
}

static const struct kept_kind one = {sizeof(int), build_one, release_one};

static enum err build_twice(const void *source, void *out)
{
    const void *first;
    TRY(kept_results_get((struct kept_results *)(uintptr_t)source, &one, source, &first));
    *(int *)out = 2 * *(const int *)first;
    return ERR_OK;
}

static const struct kept_kind twice = {sizeof(int), build_twice, release_one};

static int set_up(void **state)
{
    static struct kept_results kept;
    kept_results_init(&kept);
    atomic_store(&builds, 0);
    atomic_store(&releases, 0);
    is_cancelled = false;
    *state = &kept;
    return 0;
}

static int tear_down(void **state)
{
    kept_results_release(*state);
    return 0;
}

static void a_result_may_need_another(void **state)
{
    const void *result;
    assert_int_equal(kept_results_get(*state, &twice, *state, &result), ERR_OK);
    assert_int_equal(*(const int *)result, 84);
    assert_int_equal(kept_results_get(*state, &one, *state, &result), ERR_OK);
    assert_int_equal(*(const int *)result, 42);
    assert_int_equal(atomic_load(&builds), 1);
    kept_results_release(*state);
    assert_int_equal(atomic_load(&releases), 2);
}

static void a_cancelled_build_is_begun_anew(void **state)
{
    const void *result = NULL;
    is_cancelled = true;
    assert_int_equal(kept_results_get(*state, &twice, *state, &result), ERR_CANCELLED);
    assert_null(result);
    is_cancelled = false;
    assert_int_equal(kept_results_get(*state, &twice, *state, &result), ERR_OK);
    assert_int_equal(*(const int *)result, 84);
    assert_int_equal(atomic_load(&builds), 2);
}

static void *ask(void *kept)
{
    const void *result = NULL;
    return kept_results_get(kept, &twice, kept, &result) == ERR_OK ? (void *)(uintptr_t)result
                                                                   : NULL;
}

static void threads_share_one_build(void **state)
{
    pthread_t threads[THREADS];
    void *first = NULL;
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, ask, *state), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        void *result;
        assert_int_equal(pthread_join(threads[i], &result), 0);
        first = first == NULL ? result : first;
        assert_non_null(result);
        assert_ptr_equal(result, first);
    }
    assert_int_equal(atomic_load(&builds), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_result_may_need_another, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_cancelled_build_is_begun_anew, set_up, tear_down),
        cmocka_unit_test_setup_teardown(threads_share_one_build, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
