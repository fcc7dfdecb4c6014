// SPDX-License-Identifier: MIT
// Tests of visible_text: escaped and unchanged characters.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "host/text/visible_text.h"

static void hidden_characters_are_spelled_out(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *shown;
    } cases[] = {
        {"", ""},
        {"std::vector<int>::grow()", "std::vector<int>::grow()"},
        {"\xc3\xa4\xe6\xbc\xa2\xf0\x9f\x98\x80", "\xc3\xa4\xe6\xbc\xa2\xf0\x9f\x98\x80"},
        {"evil\xe2\x80\xaeredro", "evil\\u{202e}redro"}, // right-to-left override
        {"a\xe2\x81\xa6"
         "b\xe2\x81\xa9",
         "a\\u{2066}b\\u{2069}"},                        // isolates
        {"zero\xe2\x80\x8bwidth", "zero\\u{200b}width"}, // zero width space
        {"\x1b[31m\x7f\n", "\\x1b[31m\\x7f\\x0a"},
        {"\xc2\x80\xc2\x9f", "\\u{80}\\u{9f}"},
        {"\xc2\x9b"
         "31m",
         "\\u{9b}31m"},                     // CSI in one character
        {"\xf3\xa0\x81\x81", "\\u{e0041}"}, // a tag
        {"cut\xe2\x80", "cut\\xe2\\x80"},
        {"\xc0\xae\xed\xa0\x80", "\\xc0\\xae\\xed\\xa0\\x80"}, // overlong, surrogate
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(strbuf_release) struct strbuf shown = {0};
        visible_append(&shown, cases[i].text);
        assert_string_equal(strbuf_text(&shown), cases[i].shown);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hidden_characters_are_spelled_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
