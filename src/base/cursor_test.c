// SPDX-License-Identifier: MIT
#include "base/cursor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/compiler.h"

static struct cursor over(const void *data, size_t len)
{
    return cursor_over((struct bytes){.data = data, .len = len});
}

static void numbers_are_little_endian(void **state)
{
    (void)state;
    static const uint8_t data[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    struct cursor c = over(data, sizeof(data));
    assert_int_equal(cursor_u8(&c), 1);
    assert_int_equal(cursor_u16(&c), 0x0302);
    assert_int_equal(cursor_u32(&c), 0x07060504);
    assert_true(cursor_u64(&c) == 0x0f0e0d0c0b0a0908ULL);
    assert_int_equal(cursor_left(&c), 0);
    assert_false(c.failed);
}

static void a_read_past_the_end_fails_for_good_and_moves_nothing(void **state)
{
    (void)state;
    static const uint8_t data[] = {1, 2, 3};
    struct cursor c = over(data, sizeof(data));
    assert_int_equal(cursor_u32(&c), 0);
    assert_true(c.failed);
    assert_int_equal(cursor_u8(&c), 0);
    assert_int_equal(cursor_offset(&c), 0);
    struct cursor huge = over(data, sizeof(data));
    assert_null(cursor_take(&huge, SIZE_MAX));
    assert_true(huge.failed);
}

static void leb128_follows_the_examples_of_dwarf5_figure_22_and_23(void **state)
{
    (void)state;
    static const struct {
        uint8_t data[10];
        size_t len;
        bool is_signed;
        int64_t want;
    } cases[] = {
        {{2}, 1, false, 2},
        {{127}, 1, false, 127},
        {{0x80, 1}, 2, false, 128},
        {{57 + 0x80, 100}, 2, false, 12857},
        {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, 10, false, -1},
        {{2}, 1, true, 2},
        {{0x7e}, 1, true, -2},
        {{127 + 0x80, 0}, 2, true, 127},
        {{1 + 0x80, 0x7f}, 2, true, -127},
        {{0x80, 0x7f}, 2, true, -128},
        {{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f}, 10, true, INT64_MIN},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct cursor c = over(cases[i].data, cases[i].len);
        int64_t got = cases[i].is_signed ? cursor_sleb(&c) : (int64_t)cursor_uleb(&c);
        assert_false(c.failed);
        assert_true(got == cases[i].want);
        assert_int_equal(cursor_left(&c), 0);
    }
}

static void a_leb128_of_more_than_64_bits_fails(void **state)
{
    (void)state;
    static const uint8_t over_wide[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2};
    static const uint8_t endless[] = {0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
                                      0x80, 0x80, 0x80, 0x80, 0x80, 0x80};
    struct cursor c = over(over_wide, sizeof(over_wide));
    (void)cursor_uleb(&c);
    assert_true(c.failed);
    c = over(endless, sizeof(endless));
    (void)cursor_uleb(&c);
    assert_true(c.failed);
    c = over(endless, sizeof(endless));
    (void)cursor_sleb(&c);
    assert_true(c.failed);
}

static void a_string_needs_its_terminator(void **state)
{
    (void)state;
    struct cursor c = over("ab\0cd", 5);
    assert_string_equal(cursor_string(&c), "ab");
    assert_string_equal(cursor_string(&c), "");
    assert_true(c.failed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_little_endian),
        cmocka_unit_test(a_read_past_the_end_fails_for_good_and_moves_nothing),
        cmocka_unit_test(leb128_follows_the_examples_of_dwarf5_figure_22_and_23),
        cmocka_unit_test(a_leb128_of_more_than_64_bits_fails),
        cmocka_unit_test(a_string_needs_its_terminator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
