// SPDX-License-Identifier: MIT
// Tests of utf8: every code point against iconv(3), and malformed bytes.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <iconv.h>

#include "base/compiler.h"
#include "host/text/utf8.h"

static void characters_have_their_lengths(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t len;
        uint32_t code;
    } cases[] = {
        {"", 1, 0},
        {"a", 1, 'a'},
        {"\xc3\xa4", 2, 0xe4},
        {"\xe2\x80\xae", 3, 0x202e},
        {"\xf4\x8f\xbf\xbf", 4, 0x10ffff},
        {"\xf4\x90\x80\x80", 0, 0}, // above the last character
        {"\xf8\x88\x80\x80", 0, 0}, // a form of five bytes
        {"\x80", 0, 0},             // a continuation byte without a first byte
        {"\xff", 0, 0},
        {"\xc0\xae", 0, 0}, // overlong
        {"\xe0\x9f\xbf", 0, 0},
        {"\xf0\x8f\xbf\xbf", 0, 0},
        {"\xed\xa0\x80", 0, 0}, // a surrogate
        {"\xc3", 0, 0},         // truncated
        {"\xe2\x80", 0, 0},
        {"\xe2\x28\xa1", 0, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint32_t code = 0;
        assert_int_equal(utf8_decode(cases[i].text, &code), cases[i].len);
        assert_int_equal(code, cases[i].code);
        assert_int_equal(utf8_is_valid(cases[i].text), cases[i].len > 0);
    }
}

static void nothing_is_read_behind_the_length(void **state)
{
    (void)state;
    uint32_t code = 0;
    assert_int_equal(utf8_decode_bytes("a", 0, &code), 0);
    assert_int_equal(utf8_decode_bytes("\xe2\x80\xae", 2, &code), 0);
    assert_int_equal(utf8_decode_bytes("\xe2\x80\xae", 3, &code), 3);
}

static void a_cut_splits_no_character(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t max;
        size_t want;
    } cases[] = {
        {"abc", 3, 3},
        {"abc", 4, 3},
        {"abc", 2, 2},
        {"abc", 0, 0},
        {"a\xe2\x80\xae", 4, 4},
        {"a\xe2\x80\xae", 3, 1},
        {"a\xe2\x80\xae", 2, 1},
        {"a\xe2\x80\xae", 1, 1},
        {"\xf0\x9f\x98\x80", 3, 0},
        {"\x80\x80\x80\x80\x80", 4, 4}, // not UTF-8
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(utf8_cut(cases[i].text, strlen(cases[i].text), cases[i].max),
                         cases[i].want);
    }
}

// Every code point is written as by iconv(3), and read back.
static void all_characters_are_those_of_iconv(void **state)
{
    (void)state;
    iconv_t converter = iconv_open("UTF-8", "UCS-4LE");
    assert_true(converter != (iconv_t)-1);
    for (uint32_t code = 1; code <= 0x10ffff; code++) {
        uint32_t from[] = {code};
        char expected[8];
        char *in = (char *)from;
        char *out = expected;
        size_t in_left = sizeof(from);
        size_t out_left = sizeof(expected);
        const bool is_character = iconv(converter, &in, &in_left, &out, &out_left) == 0;
        assert_int_equal(utf8_is_character(code), is_character);
        if (!is_character) {
            continue;
        }
        const size_t len = (size_t)(out - expected);
        struct strbuf ours = {0};
        utf8_append(&ours, code);
        uint32_t back = 0;
        if (ours.len != len || memcmp(strbuf_text(&ours), expected, len) != 0 ||
            utf8_decode_bytes(expected, len, &back) != len || back != code) {
            fail_msg("U+%04x", code);
        }
        strbuf_release(&ours);
    }
    assert_false(utf8_is_character(0x110000));
    assert_int_equal(iconv_close(converter), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(characters_have_their_lengths),
        cmocka_unit_test(nothing_is_read_behind_the_length),
        cmocka_unit_test(a_cut_splits_no_character),
        cmocka_unit_test(all_characters_are_those_of_iconv),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
