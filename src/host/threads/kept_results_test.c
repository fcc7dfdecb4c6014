// SPDX-License-Identifier: MIT
// Tests of kept_results.c: a result is built once and shared, also by threads; a cancelled build is
// begun anew; a result may be built of another one; one that does not fit is its caller's.
#include "host/threads/kept_results.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
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

static const struct kept_kind one = {sizeof(int), build_one, NULL, release_one};

static enum err build_twice(const void *source, void *out)
{
    int first;
    bool is_lent;
    TRY(kept_results_get((struct kept_results *)(uintptr_t)source, &one, source, &first, &is_lent));
    *(int *)out = 2 * first;
    return ERR_OK;
}

static const struct kept_kind twice = {sizeof(int), build_twice, NULL, release_one};

struct block {
    char *owned;
};

static enum err build_block(const void *source, void *out)
{
    (void)source;
    atomic_fetch_add(&builds, 1);
    ((struct block *)out)->owned = malloc(100);
    return ERR_OK;
}

static size_t weigh_block(const void *block)
{
    return ((const struct block *)block)->owned != NULL ? 100 : 0;
}

static void release_block(void *block)
{
    free(((struct block *)block)->owned);
    atomic_fetch_add(&releases, 1);
}

static const struct kept_kind block = {sizeof(struct block), build_block, weigh_block,
                                       release_block};
static const struct kept_kind another = {sizeof(struct block), build_block, weigh_block,
                                         release_block};

static int set_up(void **state)
{
    static struct kept_results kept;
    kept_results_init(&kept, 2 * sizeof(struct block) + 100);
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
    int result = 0;
    bool is_lent = false;
    assert_int_equal(kept_results_get(*state, &twice, *state, &result, &is_lent), ERR_OK);
    assert_true(is_lent);
    assert_int_equal(result, 84);
    assert_int_equal(kept_results_get(*state, &one, *state, &result, &is_lent), ERR_OK);
    assert_true(is_lent);
    assert_int_equal(result, 42);
    assert_int_equal(atomic_load(&builds), 1);
    kept_results_release(*state);
    assert_int_equal(atomic_load(&releases), 2);
}

static void a_cancelled_build_is_begun_anew(void **state)
{
    int result = 0;
    bool is_lent = false;
    is_cancelled = true;
    assert_int_equal(kept_results_get(*state, &twice, *state, &result, &is_lent), ERR_CANCELLED);
    assert_int_equal(result, 0);
    is_cancelled = false;
    assert_int_equal(kept_results_get(*state, &twice, *state, &result, &is_lent), ERR_OK);
    assert_int_equal(result, 84);
    assert_int_equal(atomic_load(&builds), 2);
}

static void *ask(void *kept)
{
    struct block result = {0};
    bool is_lent = false;
    const enum err outcome = kept_results_get(kept, &block, kept, &result, &is_lent);
    return outcome == ERR_OK && is_lent ? result.owned : NULL;
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

static void what_does_not_fit_is_its_callers(void **state)
{
    struct block kept;
    struct block own[2];
    bool is_lent = false;
    assert_int_equal(kept_results_get(*state, &block, *state, &kept, &is_lent), ERR_OK);
    assert_true(is_lent);
    for (size_t i = 0; i < ARRAY_LEN(own); i++) {
        assert_int_equal(kept_results_get(*state, &another, *state, &own[i], &is_lent), ERR_OK);
        assert_false(is_lent);
    }
    assert_ptr_not_equal(own[0].owned, own[1].owned);
    kept_results_release(*state);
    assert_int_equal(atomic_load(&releases), 1);
    release_block(&own[0]);
    release_block(&own[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_result_may_need_another, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_cancelled_build_is_begun_anew, set_up, tear_down),
        cmocka_unit_test_setup_teardown(threads_share_one_build, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_does_not_fit_is_its_callers, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
