// SPDX-License-Identifier: MIT
// clean_text: which characters of a name stay, and the replacements of the others.
#include "formats/codec/clean_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"

static void names_stay_on_one_line(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const char *wanted;
    } cases[] = {
        {"", ""},
        {"plain name", "plain name"},
        {"\x01\x1f \x7e\x7f", "   \x7e "},          // the ends of C0, and DEL
        {"\xc2\x80\xc2\x9f\xc2\xa1", "  \xc2\xa1"}, // the ends of C1
        {"a\nb\tc\x1b[31m", "a b c [31m"},
        {"\xff", "\xef\xbf\xbd"}, // not UTF-8
        {"\xc3", "\xef\xbf\xbd"}, // truncated
        {"\xc3(", "\xef\xbf\xbd("},
        {"\xe2\x80\xae", "\\u{202e}"}, // changes the writing direction
        {"\xe6\x95\xb0\xf0\x9f\x92\xa5", "\xe6\x95\xb0\xf0\x9f\x92\xa5"},
        {"a;b;;", "a:b::"}, // the format's own character
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(strbuf_release) struct strbuf out = {0};
        clean_append(&out, cases[i].name, (struct clean_rule){.reserved = ';', .replacement = ':'});
        assert_string_equal(strbuf_text(&out), cases[i].wanted);
    }
}

static void without_a_rule_everything_visible_stays(void **state)
{
    (void)state;
    char ascii[0x7f - 0x20 + 1] = {0};
    for (char c = 0x20; c < 0x7f; c++) {
        ascii[c - 0x20] = c;
    }
    CLEANUP(strbuf_release) struct strbuf out = {0};
    clean_append(&out, ascii, (struct clean_rule){0});
    assert_string_equal(strbuf_text(&out), ascii);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_stay_on_one_line),
        cmocka_unit_test(without_a_rule_everything_visible_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
