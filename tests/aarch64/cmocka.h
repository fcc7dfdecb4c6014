// SPDX-License-Identifier: MIT
// cmocka: the part of cmocka's interface that our unit tests use, for machines for which we are
// cross-built and there is no cmocka package. Prints what cmocka prints.
//
// An assertion ends its test, by longjmp, and the next one is run. Context: tests, one thread.
#pragma once

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct CMUnitTest {
    const char *name;
    void (*run)(void **state);
    int (*setup)(void **state);
    int (*teardown)(void **state);
};

static jmp_buf cmocka_failed;

#define fail_msg(...)                                                \
    do {                                                             \
        (void)fprintf(stderr, "%s:%d: error: ", __FILE__, __LINE__); \
        (void)fprintf(stderr, __VA_ARGS__);                          \
        (void)fputc('\n', stderr);                                   \
        longjmp(cmocka_failed, 1);                                   \
    } while (0)

#define fail()             fail_msg("failed")
#define print_message(...) ((void)printf(__VA_ARGS__))
#define print_error(...)   ((void)fprintf(stderr, __VA_ARGS__))
#define cmocka_unit_test(test)  \
    {                           \
#        test, test, NULL, NULL \
    }
#define cmocka_unit_test_setup(test, setup) \
    {                                       \
#        test, test, setup, NULL            \
    }
#define cmocka_unit_test_setup_teardown(test, setup, teardown) \
    {                                                          \
#        test, test, setup, teardown                           \
    }
#define cmocka_run_group_tests(tests, setup, teardown) \
    cmocka_run(tests, sizeof(tests) / sizeof((tests)[0]), setup, teardown)

#define assert_true(condition)              \
    do {                                    \
        if (!(condition)) {                 \
            fail_msg("not %s", #condition); \
        }                                   \
    } while (0)
#define assert_false(condition)        assert_true(!(condition))
#define assert_null(pointer)           assert_true((pointer) == NULL)
#define assert_non_null(pointer)       assert_true((pointer) != NULL)
#define assert_ptr_equal(a, b)         assert_true((const void *)(a) == (const void *)(b))
#define assert_ptr_not_equal(a, b)     assert_true((a) != (b))
#define assert_string_equal(a, b)      assert_true(strcmp(a, b) == 0)
#define assert_memory_equal(a, b, len) assert_true(memcmp(a, b, len) == 0)
#define assert_int_not_equal(a, b)     assert_true((uintmax_t)(a) != (uintmax_t)(b))
#define assert_in_range(value, low, high) \
    assert_true((uintmax_t)(value) >= (uintmax_t)(low) && (uintmax_t)(value) <= (uintmax_t)(high))
#define assert_int_equal(a, b)                                              \
    do {                                                                    \
        const uintmax_t cmocka_a = (uintmax_t)(a);                          \
        const uintmax_t cmocka_b = (uintmax_t)(b);                          \
        if (cmocka_a != cmocka_b) {                                         \
            fail_msg("%s is %#jx, %s is %#jx", #a, cmocka_a, #b, cmocka_b); \
        }                                                                   \
    } while (0)

static inline int cmocka_run_one(const struct CMUnitTest *test, void **state)
{
    volatile int failed = 1;
    if (setjmp(cmocka_failed) == 0) {
        if (test->setup != NULL && test->setup(state) != 0) {
            return 1;
        }
        test->run(state);
        failed = 0;
    }
    return (test->teardown != NULL && test->teardown(state) != 0) || failed;
}

static inline int cmocka_run(const struct CMUnitTest *tests,
                             size_t count,
                             int (*group_setup)(void **state),
                             int (*group_teardown)(void **state))
{
    void *state = NULL;
    int failed = group_setup != NULL && group_setup(&state) != 0 ? (int)count : 0;
    for (size_t i = 0; i < count && failed < (int)count; i++) {
        const int result = cmocka_run_one(&tests[i], &state);
        (void)printf("[ %s ] %s\n", result == 0 ? "      OK" : " FAILED ", tests[i].name);
        (void)fflush(stdout);
        failed += result;
    }
    if (group_teardown != NULL && group_teardown(&state) != 0 && failed == 0) {
        failed = (int)count;
    }
    (void)printf("[  PASSED  ] %d test(s).\n", (int)count - failed);
    if (failed > 0) {
        (void)printf("[  FAILED  ] %d test(s)\n", failed);
    }
    return failed;
}
