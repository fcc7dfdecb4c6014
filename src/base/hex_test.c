// SPDX-License-Identifier: MIT
// Tests of hex: every digit, against libc, and texts of digits.
#include "base/hex.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"

static void digits_are_those_of_libc(void **state)
{
    (void)state;
    for (int c = 1; c < 256; c++) {
        const char text[2] = {(char)c};
        const int wanted = isxdigit(c) ? (int)strtol(text, NULL, 16) : -1;
        print_message("%#x\n", (unsigned)c);
        assert_int_equal(hex_digit((char)c), wanted);
    }
    assert_int_equal(hex_digit('\0'), -1);
}

static void a_text_is_pairs_of_digits_that_have_room(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t room;
        size_t len;
        const char *bytes;
    } cases[] = {
        {"", 3, 0, ""},
        {"0a", 3, 1, "\x0a"},
        {"aFf9", 3, 2, "\xaf\xf9"},
        {"010203", 3, 3, "\1\2\3"},
        {"01020304", 3, 0, ""},
        {"0", 3, 0, ""},
        {"012", 3, 0, ""},
        {"g0", 3, 0, ""},
        {"0g", 3, 0, ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint8_t out[4] = {0, 0, 0, 0x55};
        const struct bytes got = hex_parse(cases[i].text, out, cases[i].room);
        print_message("'%s'\n", cases[i].text);
        assert_int_equal(got.len, cases[i].len);
        assert_memory_equal(out, cases[i].bytes, cases[i].len);
        assert_int_equal(out[3], 0x55);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(digits_are_those_of_libc),
        cmocka_unit_test(a_text_is_pairs_of_digits_that_have_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
