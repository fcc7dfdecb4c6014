// SPDX-License-Identifier: MIT
#include "host/containers/vec.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "host/containers/memory_end.h"

struct pair {
    uint64_t key;
    char tag;
};

DEFINE_VEC(pair_vec, struct pair);

DEFINE_VEC(sorted_vec, int);

static void items_stay_in_order_while_it_grows(void **state)
{
    (void)state;
    struct pair_vec v = {0};
    for (uint64_t i = 0; i < 10000; i++) {
        assert_int_equal(pair_vec_push(&v, (struct pair){.key = i * i, .tag = (char)i}), ERR_OK);
        assert_true(v.len <= v.cap);
    }
    assert_int_equal(v.len, 10000);
    for (uint64_t i = 0; i < v.len; i++) {
        assert_int_equal(v.items[i].key, i * i);
    }
    pair_vec_release(&v);
    assert_null(v.items);
    pair_vec_release(&v);
}

static void reserving_makes_room_without_moving_again(void **state)
{
    (void)state;
    struct u32_vec v = {0};
    assert_int_equal(u32_vec_reserve(&v, 1000), ERR_OK);
    uint32_t *before = v.items;
    for (uint32_t i = 0; i < 1000; i++) {
        assert_int_equal(u32_vec_push(&v, i), ERR_OK);
    }
    assert_ptr_equal(v.items, before);
    u32_vec_release(&v);
}

static void resizing_adds_zeroes(void **state)
{
    (void)state;
    struct u64_vec v = {0};
    assert_int_equal(u64_vec_push(&v, 7), ERR_OK);
    assert_int_equal(u64_vec_resize(&v, 100), ERR_OK);
    assert_int_equal(v.items[0], 7);
    for (size_t i = 1; i < 100; i++) {
        assert_int_equal(v.items[i], 0);
    }
    v.items[50] = 1;
    assert_int_equal(u64_vec_resize(&v, 2), ERR_OK);
    assert_int_equal(u64_vec_resize(&v, 60), ERR_OK);
    assert_int_equal(v.items[50], 0);
    u64_vec_release(&v);
}

static void impossible_sizes_fail_and_change_nothing(void **state)
{
    (void)state;
    struct u64_vec v = {0};
    assert_int_equal(u64_vec_push(&v, 7), ERR_OK);
    struct u64_vec before = v;
    static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 1, SIZE_MAX / 8, SIZE_MAX / 8 + 1,
                                   (size_t)1 << 60};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        assert_int_equal(u64_vec_reserve(&v, sizes[i]), ERR_NO_MEMORY);
        assert_memory_equal(&v, &before, sizeof(v));
    }
    u64_vec_release(&v);
}

static void memory_that_ended_is_noted(void **state)
{
    (void)state;
    struct u64_vec v = {0};
    memory_end_forget();
    u64_vec_add(&v, 7);
    assert_int_equal(memory_end_result(), ERR_OK);
    assert_int_equal(v.len, 1);
    assert_int_equal(u64_vec_reserve(&v, SIZE_MAX), ERR_NO_MEMORY);
    assert_int_equal(memory_end_result(), ERR_NO_MEMORY);
    assert_int_equal(memory_end_result(), ERR_NO_MEMORY);
    memory_end_forget();
    assert_int_equal(memory_end_result(), ERR_OK);
    assert_int_equal(u64_vec_reserve(&v, (size_t)1 << 60), ERR_NO_MEMORY);
    assert_int_equal(memory_end_result(), ERR_NO_MEMORY);
    u64_vec_release(&v);
}

static int compare(const void *left, const void *right)
{
    return *(const int *)left - *(const int *)right;
}

static int compare_by(const void *left, const void *right, void *sign)
{
    return compare(left, right) * *(const int *)sign;
}

static void it_sorts_itself(void **state)
{
    static const int given[] = {3, 1, 2};
    struct sorted_vec v = {0};
    (void)state;
    sorted_vec_sort(&v, compare); // an empty one has no items
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(sorted_vec_push(&v, given[i]), ERR_OK);
    }
    sorted_vec_sort(&v, compare);
    assert_true(v.items[0] == 1 && v.items[1] == 2 && v.items[2] == 3);
    sorted_vec_sort_by(&v, compare_by, &(int){-1});
    assert_true(v.items[0] == 3 && v.items[1] == 2 && v.items[2] == 1);
    sorted_vec_release(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_stay_in_order_while_it_grows),
        cmocka_unit_test(reserving_makes_room_without_moving_again),
        cmocka_unit_test(resizing_adds_zeroes),
        cmocka_unit_test(impossible_sizes_fail_and_change_nothing),
        cmocka_unit_test(memory_that_ended_is_noted),
        cmocka_unit_test(it_sorts_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
