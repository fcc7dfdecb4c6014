// SPDX-License-Identifier: MIT
#include "symbols/names/range_index.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>

#include <cmocka.h>

#include "base/hash.h"

static void add(struct range_index *index, uint64_t begin, uint64_t end, uint32_t value)
{
    assert_int_equal(range_index_add(index, begin, end, value), ERR_OK);
}

// Return the value of the first range yielded for `address`, or -1.
static int64_t first(const struct range_index *index, uint64_t address)
{
    struct range_search search = range_index_search(index, address);
    const struct range *range = range_index_next(index, &search, address);
    return range != NULL ? (int64_t)range->value : -1;
}

static void an_empty_index_holds_nothing(void **state)
{
    (void)state;
    struct range_index index = {0};
    assert_int_equal(first(&index, 0), -1);
    add(&index, 5, 5, 1);
    add(&index, 6, 5, 1);
    assert_int_equal(range_index_seal(&index), ERR_OK);
    assert_int_equal(first(&index, 5), -1);
    range_index_release(&index);
}

static void the_innermost_comes_first_and_the_outer_ones_follow(void **state)
{
    (void)state;
    struct range_index index = {0};
    add(&index, 12, 14, 3);
    add(&index, 0, 100, 1);
    add(&index, 10, 20, 2);
    add(&index, 30, 40, 4);
    assert_int_equal(range_index_seal(&index), ERR_OK);
    struct range_search search = range_index_search(&index, 13);
    assert_int_equal(range_index_next(&index, &search, 13)->value, 3);
    assert_int_equal(range_index_next(&index, &search, 13)->value, 2);
    assert_int_equal(range_index_next(&index, &search, 13)->value, 1);
    assert_null(range_index_next(&index, &search, 13));
    assert_int_equal(first(&index, 14), 2);
    assert_int_equal(first(&index, 20), 1);
    assert_int_equal(first(&index, 39), 4);
    assert_int_equal(first(&index, 99), 1);
    assert_int_equal(first(&index, 100), -1);
    range_index_release(&index);
}

static void equal_begins_are_yielded_in_order_of_value(void **state)
{
    (void)state;
    struct range_index index = {0};
    add(&index, 1, UINT64_MAX, 7);
    add(&index, 1, UINT64_MAX, 5);
    add(&index, 1, UINT64_MAX, 6);
    assert_int_equal(range_index_seal(&index), ERR_OK);
    struct range_search search = range_index_search(&index, 9);
    for (uint32_t want = 5; want <= 7; want++) {
        assert_int_equal(range_index_next(&index, &search, 9)->value, want);
    }
    range_index_release(&index);
}

static void a_cleared_index_holds_nothing_and_is_used_again(void **state)
{
    (void)state;
    struct range_index index = {0};
    add(&index, 10, 20, 1);
    add(&index, 5, 40, 2);
    assert_int_equal(range_index_seal(&index), ERR_OK);
    range_index_clear(&index);
    assert_int_equal(first(&index, 12), -1);
    assert_int_equal(range_index_seal(&index), ERR_OK);
    assert_int_equal(first(&index, 12), -1);
    add(&index, 30, 31, 3);
    assert_int_equal(range_index_seal(&index), ERR_OK);
    assert_int_equal(first(&index, 12), -1);
    assert_int_equal(first(&index, 30), 3);
    range_index_release(&index);
}

// Compare with a scan of all ranges, for every address of a small space.
static void it_finds_what_a_full_scan_finds(void **state)
{
    (void)state;
    enum {
        RANGE_COUNT = 60,
        SPACE = 300
    };
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct range_index index = {0};
        struct range ranges[RANGE_COUNT];
        for (uint32_t i = 0; i < RANGE_COUNT; i++) {
            uint64_t random = hash_mix(seed << 32 | i);
            uint64_t begin = random % SPACE;
            ranges[i] = (struct range){begin, begin + (random >> 32) % 40, i};
            add(&index, ranges[i].begin, ranges[i].end, i);
        }
        assert_int_equal(range_index_seal(&index), ERR_OK);
        for (uint64_t address = 0; address < SPACE + 50; address++) {
            uint64_t want = 0;
            uint64_t got = 0;
            for (uint32_t i = 0; i < RANGE_COUNT; i++) {
                bool holds = ranges[i].begin <= address && address < ranges[i].end;
                want |= holds ? UINT64_C(1) << i : 0;
            }
            struct range_search search = range_index_search(&index, address);
            const struct range *range;
            while ((range = range_index_next(&index, &search, address)) != NULL) {
                got |= UINT64_C(1) << range->value;
            }
            assert_true(got == want);
        }
        range_index_release(&index);
    }
}

static void a_search_ends_even_where_everything_overlaps(void **state)
{
    (void)state;
    enum {
        COUNT = 200000
    };
    struct range_index index = {0};
    add(&index, 0, UINT64_MAX, COUNT);
    for (uint32_t i = 0; i < COUNT; i++) {
        add(&index, 1 + i, 2 + i, i); // because of one long range the search visits all of these
    }
    assert_int_equal(range_index_seal(&index), ERR_OK);
    for (uint64_t i = 0; i < 10000; i++) {
        assert_int_equal(first(&index, COUNT + 1 + i), -1);
    }
    assert_int_equal(first(&index, 5000), 4999);
    range_index_release(&index);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_index_holds_nothing),
        cmocka_unit_test(the_innermost_comes_first_and_the_outer_ones_follow),
        cmocka_unit_test(equal_begins_are_yielded_in_order_of_value),
        cmocka_unit_test(a_cleared_index_holds_nothing_and_is_used_again),
        cmocka_unit_test(it_finds_what_a_full_scan_finds),
        cmocka_unit_test(a_search_ends_even_where_everything_overlaps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
