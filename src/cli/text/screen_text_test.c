// SPDX-License-Identifier: MIT
// Tests of screen_text and output_name: untrusted names for terminals and file systems.
#include "cli/text/screen_text.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "cli/options/output_name.h"
#include "host/os/file.h"

static void what_terminals_obey_is_escaped(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *wanted;
        size_t columns;
    } cases[] = {
        {"plain", "plain", 5},
        {"", "", 0},
        {"\033[31m", "\\x1b[31m", 8},
        {"a\nb\tc\x7f", "a\\x0ab\\x09c\\x7f", 15},
        {"\xc2\x9b", "\\u{9b}", 6},
        {"\xe2\x80\xae", "\\u{202e}", 8},
        {"\xc3\xa9", "\xc3\xa9", 1},
        {"\xe6\x95\xb0", "\xe6\x95\xb0", 2},
        {"\xff", "\\xff", 4},
        {"\xc3", "\\xc3", 4},                             // truncated
        {"\xc0\xaf", "\\xc0\\xaf", 8},                    // overlong
        {"\xed\xa0\x80", "\\xed\\xa0\\x80", 12},          // a surrogate
        {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80", 16}, // beyond Unicode
        {"\xf0\x9f\x92\xa5", "\xf0\x9f\x92\xa5", 2},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(strbuf_release) struct strbuf out = {0};
        screen_append(&out, cases[i].text);
        assert_string_equal(strbuf_text(&out), cases[i].wanted);
        assert_int_equal(screen_columns(strbuf_text(&out)), cases[i].columns);
    }
}

// Text that is not safe has columns all the same: each invalid byte takes one.
static void characters_have_columns(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t columns;
    } cases[] = {
        {"a\xff\xff", 3},
        {"\xff", 1},
        // The first and the last wide character of a block, and their neighbours.
        {"\xe1\x84\x80", 2},     // U+1100
        {"\xe1\x83\xbf", 1},     // U+10FF
        {"\xe1\x85\x9f", 2},     // U+115F
        {"\xe1\x85\xa0", 1},     // U+1160
        {"\xf0\xbf\xbf\xbd", 2}, // U+3FFFD, the last of all
        {"\xf0\xbf\xbf\xbe", 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(screen_columns(cases[i].text), cases[i].columns);
    }
}

static void cutting_keeps_what_tells_most(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t columns;
        enum screen_cut cut;
        const char *wanted;
    } cases[] = {
        {"abcdefghij", 10, SCREEN_CUT_MIDDLE, "abcdefghij"},
        {"abcdefghij", 9, SCREEN_CUT_MIDDLE, "abc...hij"},
        {"abcdefghij", 8, SCREEN_CUT_MIDDLE, "abc...ij"},
        {"abcdefghij", 8, SCREEN_CUT_START, "...fghij"},
        {"abcdefghij", 4, SCREEN_CUT_START, "...j"},
        {"abcdefghij", 3, SCREEN_CUT_START, "abc"},
        {"abcdefghij", 0, SCREEN_CUT_MIDDLE, ""},
        {"\xe6\x95\xb0\xe6\x95\xb0\xe6\x95\xb0\xe6\x95\xb0", 6, SCREEN_CUT_START,
         "...\xe6\x95\xb0"},
        {"", 5, SCREEN_CUT_START, ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(strbuf_release) struct strbuf out = {0};
        screen_append_cut(&out, cases[i].text, cases[i].columns, cases[i].cut);
        assert_string_equal(strbuf_text(&out), cases[i].wanted);
        assert_true(screen_columns(strbuf_text(&out)) <= cases[i].columns);
    }
}

static void functions_take_the_longest_form_that_fits(void **state)
{
    (void)state;
    static const char name[] = "std::vector<int> app::load<char>(std::string const&, int) const";
    static const struct {
        size_t columns;
        const char *wanted;
    } cases[] = {
        {80, "app::load<char>(std::string const&, int) const"},
        {46, "app::load<char>(std::string const&, int) const"},
        {45, "app::load<char>"},
        {14, "app::load"},
        {8, "app...ad"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(strbuf_release) struct strbuf out = {0};
        screen_append_function(&out, name, cases[i].columns);
        assert_string_equal(strbuf_text(&out), cases[i].wanted);
    }
}

static void words_are_wrapped(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        unsigned indent;
        size_t columns;
        const char *wanted;
    } cases[] = {
        {"", 2, 10, ""},
        {"word", 0, 10, "word\n"},
        {"one two", 2, 9, "  one two\n"},
        {"one two", 2, 8, "  one\n  two\n"},
        {"one  two   three", 1, 9, " one two\n three\n"},
        {"a b c d", 0, 3, "a b\nc d\n"},
        {"a longword b", 2, 4, "  a\n  longword\n  b\n"}, // longer than a line
        {"\xe6\x95\xb0 b", 0, 4, "\xe6\x95\xb0 b\n"},     // columns, not bytes
        {"\xe6\x95\xb0 b", 0, 3, "\xe6\x95\xb0\nb\n"},
        {"ends ", 0, 10, "ends\n"},
        {"The heap held 22.0 MiB at 8.21 s.", 2, 16, "  The heap held\n  22.0 MiB at\n  8.21 s.\n"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char *text = NULL;
        size_t len = 0;
        FILE *out = open_memstream(&text, &len);
        assert_non_null(out);
        screen_print_wrapped(out, cases[i].text, cases[i].indent, cases[i].columns);
        assert_int_equal(fclose(out), 0);
        assert_string_equal(text, cases[i].wanted);
        free(text);
    }
}

static void ends_of_texts_are_found(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        const char *wanted;
    } paths[] = {
        {"/a/b", "b"}, {"b", "b"}, {"/b", "b"}, {"/a/", "/a/"}, {"/", "/"}, {"", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        assert_string_equal(path_file_name(paths[i].path), paths[i].wanted);
    }
    static const struct {
        const char *text;
        const char *end;
        bool wanted;
    } ends[] = {
        {"a.json", ".json", true},   {".json", ".json", true}, {"json", ".json", false},
        {"a.jsonx", ".json", false}, {"a", "", true},          {"", "", true},
    };
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        assert_int_equal(screen_ends_with(ends[i].text, ends[i].end), ends[i].wanted);
    }
    assert_string_equal(screen_format_ms(0).text, "<1 ms");
    assert_string_equal(screen_format_ms(1).text, "1.00 ms");
    assert_string_equal(screen_format_ms(5680).text, "5.68 s");
}

static void lines_break_between_words_but_not_before_units(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t columns;
        const char *wanted;
    } cases[] = {
        {"one two three", 13, "one two three"},
        {"one two three", 12, "one two"},
        {"one two three", 7, "one two"},
        {"one two three", 6, "one"},
        {"one two three", 0, "one"}, // a word is never torn
        {"held 22.0 MiB. It", 9, "held"},
        {"held 22.0 MiB. It", 14, "held 22.0 MiB."},
        {"since 8.21 s, when", 11, "since"},
        {"since 8.21 s, when", 13, "since 8.21 s,"},
        {"in 15 blocks", 5, "in 15"},
        {"for 1 min 18 s", 9, "for 1 min"},
        {"\xe6\x95\xb0\xe6\x95\xb0 a", 5, "\xe6\x95\xb0\xe6\x95\xb0"},
        {"end ", 9, "end"},
        {"", 5, ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const size_t len = screen_fitting_words(cases[i].text, cases[i].columns);
        if (len != strlen(cases[i].wanted) || memcmp(cases[i].text, cases[i].wanted, len) != 0) {
            fail_msg("%zu: '%.*s'", i, (int)len, cases[i].text);
        }
    }
}

static void default_names_are_safe_file_names(void **state)
{
    (void)state;
    static const struct {
        const char *program;
        const char *wanted;
    } cases[] = {
        {"/usr/bin/app", "cairn.app.%p.cairn"},
        {"app", "cairn.app.%p.cairn"},
        {"./my app", "cairn.my_app.%p.cairn"},
        {"/x/new\nline", "cairn.new_line.%p.cairn"},
        {"100%p", "cairn.100_p.%p.cairn"},
        {"g++-12", "cairn.g++-12.%p.cairn"},
        {"\xc3\xa9t\xc3\xa9", "cairn.\xc3\xa9t\xc3\xa9.%p.cairn"},
        {"a\xc3", "cairn.a_.%p.cairn"}, // truncated
        {"a\xe2\x80\xae"
         "b",
         "cairn.a___b.%p.cairn"}, // reverses the text direction
        {"\xff", "cairn._.%p.cairn"},
        {"..", "cairn....%p.cairn"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(strbuf_release) struct strbuf out = {0};
        output_name_append_default(&out, cases[i].program, true);
        assert_string_equal(strbuf_text(&out), cases[i].wanted);
    }
    char long_name[1024];
    memset(long_name, 'x', sizeof(long_name) - 1);
    long_name[sizeof(long_name) - 1] = '\0';
    CLEANUP(strbuf_release) struct strbuf out = {0};
    output_name_append_default(&out, long_name, true);
    assert_int_equal(out.len, strlen("cairn.") + 128 + strlen(".%p.cairn"));
}

static void patterns_are_expanded(void **state)
{
    (void)state;
    char host[HOST_NAME_MAX + 1] = "";
    char host_first[HOST_NAME_MAX + 10];
    char host_last[HOST_NAME_MAX + 10];
    assert_int_equal(gethostname(host, sizeof(host) - 1), 0);
    (void)snprintf(host_first, sizeof(host_first), "%s-4711", host);  // fits
    (void)snprintf(host_last, sizeof(host_last), "47114711%s", host); // fits
    const struct {
        const char *pattern;
        const char *wanted; // NULL: refused
    } cases[] = {
        {"plain.cairn", "plain.cairn"},
        {"a/%p", "a/4711"},
        {"%h-%p", host_first},
        {"100%%", "100%"},
        {"%%p", "%p"},
        {"%p%p%h", host_last},
        {"%", NULL},
        {"%x", NULL},
        {"", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(strbuf_release) struct strbuf out = {0};
        struct err_info info = {0};
        enum err problem = output_name_expand(cases[i].pattern, 4711, &out, &info);
        if (cases[i].wanted == NULL) {
            assert_int_equal(problem, ERR_INVALID);
            assert_non_null(strstr(info.text, "--output"));
        } else {
            assert_int_equal(problem, ERR_OK);
            assert_string_equal(strbuf_text(&out), cases[i].wanted);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_terminals_obey_is_escaped),
        cmocka_unit_test(characters_have_columns),
        cmocka_unit_test(cutting_keeps_what_tells_most),
        cmocka_unit_test(functions_take_the_longest_form_that_fits),
        cmocka_unit_test(words_are_wrapped),
        cmocka_unit_test(ends_of_texts_are_found),
        cmocka_unit_test(lines_break_between_words_but_not_before_units),
        cmocka_unit_test(default_names_are_safe_file_names),
        cmocka_unit_test(patterns_are_expanded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
