// SPDX-License-Identifier: MIT
// Tests of toml: the accepted subset, and the messages about everything else.
#include "host/text/toml.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"

static enum err parse(const char *text, struct toml *out, struct err_info *info)
{
    struct bytes input = {.data = (const uint8_t *)text, .len = strlen(text)};
    return toml_parse(input, "f.toml", out, info);
}

static void values_are_read(void **state)
{
    (void)state;
    CLEANUP(toml_release) struct toml toml = {0};
    struct err_info info = {0};
    static const char text[] = "# first\n"
                               "top = true\r\n"
                               "\n"
                               "[check] # a table\n"
                               "max-peak = \"64\\u004diB\\t\\\"\\\\\"\n"
                               " a_1=1_000\n"
                               "\tnegative = -7\n"
                               "raw = 'C:\\new' # not an escape\n"
                               "[[function]]\n"
                               "match = \"\"\n"
                               "[[function]]\n"
                               "match = \"\\U0001F600\"";
    assert_int_equal(parse(text, &toml, &info), ERR_OK);
    static const struct {
        const char *table;
        const char *key;
        enum toml_type type;
        const char *text;
        int64_t number;
        uint32_t line;
    } wanted[] = {
        {"", "top", TOML_BOOLEAN, "", 1, 2},
        {"check", "max-peak", TOML_TEXT, "64MiB\t\"\\", 0, 5},
        {"check", "a_1", TOML_INTEGER, "", 1000, 6},
        {"check", "negative", TOML_INTEGER, "", -7, 7},
        {"check", "raw", TOML_TEXT, "C:\\new", 0, 8},
        {"function", "match", TOML_TEXT, "", 0, 10},
        {"function", "match", TOML_TEXT, "\xf0\x9f\x98\x80", 0, 12},
    };
    assert_int_equal(toml.entries.len, ARRAY_LEN(wanted));
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
        const struct toml_entry *entry = &toml.entries.items[i];
        const struct toml_table *table = &toml.tables.items[entry->table];
        assert_string_equal(toml_text(&toml, table->name), wanted[i].table);
        assert_string_equal(toml_text(&toml, entry->key), wanted[i].key);
        assert_int_equal(entry->type, wanted[i].type);
        assert_string_equal(toml_text(&toml, entry->text), wanted[i].text);
        int64_t number = entry->type == TOML_BOOLEAN ? entry->boolean : entry->integer;
        assert_int_equal(number, wanted[i].number);
        assert_int_equal(entry->line, wanted[i].line);
    }
    assert_int_equal(toml.tables.len, 4);
}

static void mistakes_are_reported_with_their_line(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum err code;
        const char *said;
    } cases[] = {
        {"a", ERR_INVALID, "f.toml:1: expected ="},
        {"\n= 1", ERR_INVALID, "f.toml:2: expected a key"},
        {"a = ", ERR_INVALID, "f.toml:1: expected \"text\""},
        {"a = 1 2", ERR_INVALID, "f.toml:1: expected the end of the line"},
        {"a = 01", ERR_INVALID, "f.toml:1: expected \"text\""},
        {"a = 1__0", ERR_INVALID, "f.toml:1: _ must be"},
        {"a = _1", ERR_INVALID, "f.toml:1: _ must be"},
        {"a = 1_", ERR_INVALID, "f.toml:1: _ must be"},
        {"a = 9223372036854775808", ERR_LIMIT, "f.toml:1: the number is too large"},
        {"a = 1.5", ERR_UNSUPPORTED, "f.toml:1: only whole decimal numbers"},
        {"a = 0x10", ERR_UNSUPPORTED, "f.toml:1: only whole decimal numbers"},
        {"a = 1979-05-27", ERR_UNSUPPORTED, "f.toml:1: only whole decimal numbers"},
        {"a = 64MiB", ERR_UNSUPPORTED, "f.toml:1: only whole decimal numbers"},
        {"a = [1]", ERR_UNSUPPORTED, "f.toml:1: arrays"},
        {"a = {b = 1}", ERR_UNSUPPORTED, "f.toml:1: arrays and inline tables"},
        {"a = \"\"\"x\"\"\"", ERR_UNSUPPORTED, "f.toml:1: texts over several lines"},
        {"a = '''x'''", ERR_UNSUPPORTED, "f.toml:1: texts over several lines"},
        {"a = \"x\ny\"", ERR_INVALID, "f.toml:1: the text has no closing quote"},
        {"a = \"x", ERR_INVALID, "f.toml:1: the text has no closing quote"},
        {"a = \"\\x\"", ERR_INVALID, "f.toml:1: unknown escape"},
        {"a = \"\\u12\"", ERR_INVALID, "f.toml:1: \\u needs four"},
        {"a = \"\\ud800\"", ERR_INVALID, "f.toml:1: this character is not allowed"},
        {"a = \"\\u0000\"", ERR_INVALID, "f.toml:1: this character is not allowed"},
        {"a = \"\x01\"", ERR_INVALID, "f.toml:1: a text may not hold control"},
        {"# \x01", ERR_INVALID, "f.toml:1: a comment may not hold control"},
        {"a.b = 1", ERR_UNSUPPORTED, "f.toml:1: keys with dots"},
        {"\"a\" = 1", ERR_UNSUPPORTED, "f.toml:1: keys in quotes"},
        {"a = 1\na = 2", ERR_INVALID, "f.toml:2: duplicate key"},
        {"[t]\n[t]", ERR_INVALID, "f.toml:2: duplicate table"},
        {"[[t]]\n[t]", ERR_INVALID, "f.toml:2: duplicate table"},
        {"[t]\n[[t]]", ERR_INVALID, "f.toml:2: duplicate table"},
        {"[t", ERR_INVALID, "f.toml:1: the table's name has no closing bracket"},
        {"[[t]", ERR_INVALID, "f.toml:1: the table's name has no closing bracket"},
        {"[]", ERR_INVALID, "f.toml:1: expected a key"},
        {"a = tru", ERR_INVALID, "f.toml:1: expected \"text\""},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(toml_release) struct toml toml = {0};
        struct err_info info = {0};
        enum err problem = parse(cases[i].text, &toml, &info);
        if (problem != cases[i].code ||
            strncmp(info.text, cases[i].said, strlen(cases[i].said)) != 0) {
            fail_msg("\"%s\" is %s: %s", cases[i].text, err_name(problem), info.text);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_read),
        cmocka_unit_test(mistakes_are_reported_with_their_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
