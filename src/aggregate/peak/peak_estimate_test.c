// SPDX-License-Identifier: MIT
// Tests of the estimates of live bytes, against sums that were made by hand.
#include "aggregate/peak/peak_estimate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/compiler.h"

static void freed_blocks_take_their_share_of_the_lost_bytes(void **state)
{
    (void)state;
    const struct unsampled_sums ten = {.lost_blocks = 10, .lost_bytes = 1003};
    static const struct {
        uint64_t freed;
        uint64_t left_blocks;
        uint64_t left_bytes;
    } cases[] = {{0, 10, 1003}, {1, 9, 903}, {5, 5, 502}, {9, 1, 100}, {10, 0, 0}, {11, 0, 0}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct unsampled_sums sums = ten;
        const struct unsampled_sums change = unsampled_sums_freed(&ten, cases[i].freed);
        unsampled_sums_add(&sums, &change);
        assert_int_equal(sums.lost_blocks, cases[i].left_blocks);
        assert_in_range(sums.lost_bytes, cases[i].left_bytes, cases[i].left_bytes + 1);
    }
}

static void nothing_is_freed_where_nothing_is_lost(void **state)
{
    (void)state;
    const struct unsampled_sums none = {.variance = 77};
    const struct unsampled_sums change = unsampled_sums_freed(&none, 5);
    assert_int_equal(change.lost_blocks, 0);
    assert_int_equal(change.lost_bytes, 0);
    assert_true(change.variance == 0);
}

static void the_only_lost_block_is_freed_whole(void **state)
{
    (void)state;
    const struct unsampled_sums one = {.lost_blocks = 1, .lost_bytes = 100};
    struct unsampled_sums sums = one;
    const struct unsampled_sums change = unsampled_sums_freed(&one, 1);
    unsampled_sums_add(&sums, &change);
    assert_int_equal(sums.lost_blocks, 0);
    assert_int_equal(sums.lost_bytes, 0);
}

// Without lost blocks there is no estimate.
static void what_is_recorded_is_exact(void **state)
{
    (void)state;
    const struct unsampled_sums sums = {.represented_bytes = 700, .variance = 1e6};
    const struct live_estimate live = live_estimate_of(&sums, 1700, 0);
    assert_int_equal(live.bytes, 1000); // recorded, each as one
    assert_int_equal(live.error_bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(freed_blocks_take_their_share_of_the_lost_bytes),
        cmocka_unit_test(nothing_is_freed_where_nothing_is_lost),
        cmocka_unit_test(the_only_lost_block_is_freed_whole),
        cmocka_unit_test(what_is_recorded_is_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
