// SPDX-License-Identifier: MIT
#include "host/text/format.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/compiler.h"

struct unsigned_case {
    uint64_t value;
    const char *want;
};

static void check(struct human (*format)(uint64_t), const struct unsigned_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(format(cases[i].value).text, cases[i].want);
    }
}

static void sizes_have_three_digits_in_binary_units(void **state)
{
    (void)state;
    static const struct unsigned_case cases[] = {
        {0, "0 B"},
        {812, "812 B"},
        {1023, "1023 B"},
        {1024, "1.00 KiB"},
        {65536, "64.0 KiB"},
        {1310720, "1.25 MiB"},
        {10234, "9.99 KiB"},
        {10239, "10.0 KiB"},
        {102348, "99.9 KiB"},
        {102399, "100 KiB"},
        {1047552, "1023 KiB"},
        {1048575, "1.00 MiB"},
        {1099511627776, "1.00 TiB"},
        {UINT64_MAX, "16.0 EiB"},
    };
    check(format_bytes, cases, ARRAY_LEN(cases));
}

static void counts_have_separators(void **state)
{
    (void)state;
    static const struct unsigned_case cases[] = {
        {0, "0"},
        {999, "999"},
        {1000, "1,000"},
        {123456, "123,456"},
        {1234567, "1,234,567"},
        {UINT64_MAX, "18,446,744,073,709,551,615"},
    };
    check(format_count, cases, ARRAY_LEN(cases));
}

static void things_agree_with_their_number(void **state)
{
    (void)state;
    assert_string_equal(format_things(0, "block", "blocks").text, "0 blocks");
    assert_string_equal(format_things(1, "block", "blocks").text, "1 block");
    assert_string_equal(format_things(2, "process was", "processes were").text, "2 processes were");
    assert_string_equal(format_things(1234567, "block", "blocks").text, "1,234,567 blocks");
    assert_string_equal(format_things(UINT64_MAX, "allocation", "allocations").text,
                        "18,446,744,073,709,551,615 allocations");
    static const char longest[] = "a phrase that is longer than the room of eighty bytes that a "
                                  "figure and its name have together";
    assert_memory_equal(format_things(1, longest, longest).text, "1 a phrase", 10);
}

static void durations_change_their_unit_where_they_should(void **state)
{
    (void)state;
    static const uint64_t s = 1000000000;
    const struct unsigned_case cases[] = {
        {0, "0 ns"},
        {999, "999 ns"},
        {1234, "1.23 us"},
        {999999, "1.00 ms"},
        {45600000, "45.6 ms"},
        {1230000000, "1.23 s"},
        {59940000000, "59.9 s"},
        {59960000000, "1 min 00 s"},
        {245 * s, "4 min 05 s"},
        {3599 * s, "59 min 59 s"},
        {3600 * s, "1 h 00 min"},
        {7380 * s, "2 h 03 min"},
        {86399 * s, "1 d 00 h"},
        {273600 * s, "3 d 04 h"},
        {UINT64_MAX, "213504 d 00 h"},
    };
    check(format_duration, cases, ARRAY_LEN(cases));
}

static void percentages_do_not_lie_at_the_ends(void **state)
{
    (void)state;
    static const struct {
        uint64_t part, whole;
        const char *want;
    } cases[] = {
        {0, 0, "-"},           {0, 5, "0%"},
        {5, 5, "100%"},        {123, 1000, "12.3%"},
        {1, 3, "33.3%"},       {2, 3, "66.7%"},
        {1, 1000000, "<0.1%"}, {999999, 1000000, ">99.9%"},
        {3, 2, "150.0%"},      {UINT64_MAX - 1, UINT64_MAX, ">99.9%"},
        {1, 1000, "0.1%"},     {999, 1000, "99.9%"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_string_equal(format_percent(cases[i].part, cases[i].whole).text, cases[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_have_three_digits_in_binary_units),
        cmocka_unit_test(counts_have_separators),
        cmocka_unit_test(things_agree_with_their_number),
        cmocka_unit_test(durations_change_their_unit_where_they_should),
        cmocka_unit_test(percentages_do_not_lie_at_the_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
