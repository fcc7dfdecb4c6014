// SPDX-License-Identifier: MIT
// Tests of number: limits, and texts that strtoul would accept.
#include "host/text/number.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/compiler.h"

static void the_digits_are_taken(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        unsigned base;
        uint64_t number;
        const char *rest;
    } cases[] = {
        {"0", 10, 0, ""},
        {"007 8", 10, 7, " 8"},
        {"12-34", 10, 12, "-34"},
        {"1e3", 10, 1, "e3"},
        {"0x10", 10, 0, "x10"},
        {"18446744073709551614", 10, UINT64_MAX - 1, ""},
        {"18446744073709551615", 10, UINT64_MAX, ""},
        {"18446744073709551616", 10, UINT64_MAX, ""},
        {"18446744073709551620kB", 10, UINT64_MAX, "kB"},
        {"99999999999999999999999999999999999999990", 10, UINT64_MAX, ""},
        {"6448", 8, 0644, "8"},
        {"fFg", 16, 255, "g"},
        {"ffffffffffffffff", 16, UINT64_MAX, ""},
        {"10000000000000000", 16, UINT64_MAX, ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *at = cases[i].text;
        uint64_t number = 0;
        print_message("%s\n", cases[i].text);
        assert_true(number_take(&at, cases[i].base, &number));
        assert_int_equal(number, cases[i].number);
        assert_string_equal(at, cases[i].rest);
    }
}

static void other_texts_are_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        " 1",
        "1 ",
        "+1",
        "-1",
        "0x1",
        "1.0",
        "1,000",
        "\n1",
        "\xd9\xa3", // an Arabic three
        "18446744073709551616",
        "-18446744073709551615",
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        uint64_t number = 42;
        print_message("'%s'\n", texts[i]);
        assert_false(number_parse(texts[i], UINT64_MAX - 1, &number));
        assert_int_equal(number, 42);
    }
}

static void the_limit_is_included(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t most;
        bool fits;
    } cases[] = {
        {"0", 0, true},
        {"1", 0, false},
        {"4294967295", UINT32_MAX, true},
        {"4294967296", UINT32_MAX, false},
        {"18446744073709551614", UINT64_MAX - 1, true},
        {"18446744073709551615", UINT64_MAX, true},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint64_t number = 42;
        print_message("%s\n", cases[i].text);
        assert_int_equal(number_parse(cases[i].text, cases[i].most, &number), cases[i].fits);
    }
}

static void a_field_is_behind_blanks(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t number;
    } cases[] = {
        {"\t   123 kB\n", 123}, {"5", 5}, {"", 0}, {" kB", 0}, {" -3", 0}, {"\n7", 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(number_field(cases[i].text), cases[i].number);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_digits_are_taken),
        cmocka_unit_test(other_texts_are_refused),
        cmocka_unit_test(the_limit_is_included),
        cmocka_unit_test(a_field_is_behind_blanks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
