// SPDX-License-Identifier: MIT
// Tests of suppressions: the syntax of rules, and what they match.
#include "profile/select/suppressions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "profile/select/pattern.h"

static void patterns_match_as_leak_sanitizer_has_them(void **state)
{
    (void)state;
    static const struct {
        const char *pattern;
        const char *name;
        bool is_match;
    } cases[] = {
        {"load", "load", true},
        {"load", "app::reload_all", true},
        {"load", "loan", false},
        {"^load", "load_all", true},
        {"^load", "reload", false},
        {"load$", "reload", true},
        {"load$", "load_all", false},
        {"load$", "load_load", true},
        {"^load$", "load", true},
        {"^load$", "loadload", false},
        {"lo*d", "xlooooodx", true},
        {"^lo*d$", "load", true},
        {"^lo*d$", "loadx", false},
        {"^lo*d$", "lod", true},
        {"^a*b*c$", "a-b-bb-c", true},
        {"^a*b*c$", "a-c-b", false},
        {"*", "anything", true},
        {"^*$", "", true},
        {"**x**", "axb", true},
        {"^aa*aa$", "aaa", false},
        {"^aa*aa$", "aaaa", true},
        {"ab*ab", "xabyab", true},
        {"ab*ab", "xab", false},
        {"$", "x", true},
        {"^", "x", true},
        {"a.c", "abc", false},
        {"lib/x", "/usr/lib/x.so", true},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        if (leak_pattern_matches(cases[i].pattern, cases[i].name) != cases[i].is_match) {
            fail_msg("\"%s\" and \"%s\"", cases[i].pattern, cases[i].name);
        }
    }
}

static enum err
add(struct suppressions *list, const char *text, const char *name, struct err_info *info)
{
    struct bytes bytes = {.data = (const uint8_t *)text, .len = strlen(text)};
    return suppressions_add(list, bytes, SUPPRESSION_FILE, name, info);
}

static void lines_are_rules_comments_or_mistakes(void **state)
{
    (void)state;
    CLEANUP(suppressions_release) struct suppressions list = {0};
    struct err_info info = {0};
    assert_int_equal(add(&list, "# no\n\n  leak:one \r\n\tleak:t wo\nleak:^x*$", "f", &info),
                     ERR_OK);
    static const char *const wanted[] = {"one", "t wo", "^x*$"};
    assert_int_equal(list.rules.len, ARRAY_LEN(wanted));
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
        assert_string_equal(suppression_pattern(&list, i), wanted[i]);
    }
    static const char *const mistakes[] = {"leak:a\nrace:b\n", "leak:a\nleak:\n", "leak:a\nb\n"};
    for (size_t i = 0; i < ARRAY_LEN(mistakes); i++) {
        assert_int_equal(add(&list, mistakes[i], "f", &info), ERR_INVALID);
        assert_string_equal(info.text, "f:2: expected leak:PATTERN or # comment");
        assert_int_equal(add(&list, mistakes[i], NULL, NULL), ERR_OK); // skipped
    }
    assert_int_equal(suppressions_add_built_in(&list), ERR_OK);
    assert_true(list.rules.len > ARRAY_LEN(wanted) + 10);
}

static void too_many_rules_are_refused(void **state)
{
    (void)state;
    CLEANUP(suppressions_release) struct suppressions list = {0};
    CLEANUP(strbuf_release) struct strbuf text = {0};
    struct err_info info = {0};
    for (size_t i = 0; i <= SUPPRESSION_RULES_MAX; i++) {
        strbuf_append_text(&text, "leak:x\n");
    }
    assert_int_equal(add(&list, strbuf_text(&text), NULL, &info), ERR_LIMIT);
    assert_true(strstr(info.text, "more than 10000 suppressions") != NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns_match_as_leak_sanitizer_has_them),
        cmocka_unit_test(lines_are_rules_comments_or_mistakes),
        cmocka_unit_test(too_many_rules_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
