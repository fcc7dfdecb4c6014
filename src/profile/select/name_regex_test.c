// SPDX-License-Identifier: MIT
// Tests of name_regex: equal results to glibc's regexec where both have the syntax, on a table and
// on random expressions; the limits; names that are not UTF-8.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <regex.h>

#include "base/compiler.h"
#include "base/test_support/by_night.h"
#include "host/text/strbuf.h"
#include "profile/select/name_regex.h"

// No line feeds: after one, glibc sometimes matches ^ although REG_NEWLINE is not set.
static const char *const texts[] = {
    "",
    "a",
    "b",
    "ab",
    "aab",
    "abab",
    "app::",
    "operator new(unsigned long)",
    "std::vector<int>::push_back(int const&)",
    "a{2}",
    "x]y",
    "x-y",
    "foo_bar",
    "foo bar",
    "A.B",
    "(a)",
    "aaaaaaaaaab",
    "a\tb",
    "_ZN3fooE",
    "tab\there",
};

// Match with glibc. Return -1 if the expression does not compile.
static int by_glibc(const char *expression, const char *text)
{
    regex_t regex;
    if (regcomp(&regex, expression, REG_EXTENDED | REG_NOSUB) != 0) {
        return -1;
    }
    int matches = regexec(&regex, text, 0, NULL, 0) == 0;
    regfree(&regex);
    return matches;
}

static int by_us(const char *expression, const char *text)
{
    CLEANUP(name_regex_release) struct name_regex regex = {0};
    if (name_regex_compile(&regex, expression, "function", NULL) != ERR_OK) {
        return -1;
    }
    int matches = name_regex_matches(&regex, text);
    // A second match with the same expression gives the same result.
    assert_int_equal(name_regex_matches(&regex, text), matches);
    assert_int_equal(name_regex_result(&regex, NULL), ERR_OK);
    return matches;
}

static void compare(const char *expression)
{
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        int wanted = by_glibc(expression, texts[i]);
        int got = by_us(expression, texts[i]);
        if (wanted != got) {
            fail_msg("\"%s\" on \"%s\": %d, glibc says %d", expression, texts[i], got, wanted);
        }
    }
}

// Expressions with equal results in POSIX and PCRE2. Malformed ones come last.
static const char *const known_expressions[] = {
    "",
    "a",
    "^a",
    "a$",
    "^$",
    "^a*$",
    "a+b",
    "a?b",
    "(ab)*",
    "(ab)+$",
    "a|b",
    "|a",
    "a|",
    "()",
    "()*",
    "(|a)+b",
    "a||b",
    "(a|b)*ab",
    "^(a|ab)(b|ab)$",
    "a{2}",
    "a{2}b",
    "a{1,3}b",
    "a{2,}b",
    "(a{1,2}){2,3}b",
    "a{0}",
    "(a|b){0}$",
    "^a{10}b",
    "^a{11}b",
    "[ab]+",
    "[^ab]",
    "[]x]y",
    "[^]x]",
    "x[]]",
    "[a-]",
    "[x-]y",
    "[a-c]b",
    "[[:alpha:]_]+",
    "[[:digit:]]",
    "[^[:space:]]+$",
    "[[:upper:]].",
    "\\.",
    "A\\.B",
    "a\\{2\\}",
    "\\(a\\)",
    "operator new",
    "^std::",
    "::push_back\\(",
    "\\w+::\\w+",
    "\\W",
    "\\s",
    "\\S+$",
    "\\bnew\\b",
    "\\Bnew",
    "foo\\b",
    "foo\\B_",
    "a.b",
    ".",
    "..",
    "^.*$",
    "(a*)*",
    "(a*)+b",
    "((a|b)*)*$",
    "a^b",
    "a$b",
    "^^a",
    "a$$",

    "(b$)|x",
    "(a|b)\\1",
    // Malformed expressions.
    "(",
    "((a)",
    "[",
    "[a",
    "[z-a]",
    "*a",
    "+",
    "?",
    "(*a)",
    "a{3,2}",
    "a{1,99999}",
    "[[:nothing:]]",
    "a\\",
    "[[.ab.]]",
};

static void what_posix_knows_is_as_in_glibc(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(known_expressions); i++) {
        compare(known_expressions[i]);
    }
}

static unsigned below(unsigned limit)
{
    static uint64_t random_state = 1;
    random_state = random_state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (unsigned)(random_state >> 33) % limit;
}

// Random expressions are short, because glibc fails on long ones. No part has two quantifiers,
// which PCRE2 interprets differently.
static void random_expressions_are_as_in_glibc(void **state)
{
    (void)state;
    static const char *const assertions[] = {"^", "$", "|", "\\b"};
    static const char *const atoms[] = {"a",      "b",   "ab",    ".",    "[ab]",    "[^a-b]",
                                        "(a|b)",  "\\w", "(a|)b", "(ab)", "(a*)",    "[[:space:]]",
                                        "(a|ab)", "()",  "(b+a)", "(b$)", "(a{2}|b)"};
    static const char *const counts[] = {"", "", "", "*", "+", "?", "{1,2}", "{2}"};
    for (unsigned round = 0; round < 5000 / step_by_day(6); round++) {
        CLEANUP(strbuf_release) struct strbuf expression = {0};
        const unsigned count = 1 + below(7);
        for (unsigned i = 0; i < count; i++) {
            if (below(4) == 0) {
                strbuf_append_text(&expression, assertions[below(ARRAY_LEN(assertions))]);
                continue;
            }
            strbuf_append_text(&expression, atoms[below(ARRAY_LEN(atoms))]);
            strbuf_append_text(&expression, counts[below(ARRAY_LEN(counts))]);
        }
        compare(strbuf_text(&expression));
    }
}

static void names_are_characters_or_bytes(void **state)
{
    (void)state;
    static const struct {
        const char *expression;
        const char *text;
        int matches;
    } cases[] = {
        {"^.$", "\xc3\xa4", 1},
        {"^[\xc3\xa4\xc3\xb6]+x$", "\xc3\xb6\xc3\xa4x", 1},
        {"abc",
         "\xff"
         "abc\xff",
         1}, // bytes that are not UTF-8 are skipped
        {"a.b",
         "a\xff"
         "b",
         0},
        {"^b",
         "\xe2\x80"
         "b",
         0},
        {"\xff", "a\xff", 1}, // an expression that is not UTF-8 compares bytes
        {"a.b", "a\nb", 1},
        {"a$", "a\n", 0},
        {"(?i)NEW", "operator new", 1}, // not in POSIX
        {"^(?!std::)\\w+", "std::x", 0},
        {"\\Qa+b\\E", "a+b", 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const int got = by_us(cases[i].expression, cases[i].text);
        if (got != cases[i].matches) {
            fail_msg("case %zu, \"%s\": %d", i, cases[i].expression, got);
        }
    }
}

static void nothing_matches_once_a_limit_was_reached(void **state)
{
    (void)state;
    static const char *const expressions[] = {
        "(((.{0,9}){0,9}){0,9})*[yz]",
        "((a*)*)*[yz]",
        "(a|aa)+$",
        "(((((a+)+)+)+)+)+[yz]",
        "(.*){1,90}[yz]",
        "(|(|(|(|a)*)*)*)*[yz]",
        "(a(?1)?a?)+[yz]",
        "(a+)+(b|\\1)[yz]",
    };
    char text[2001] = "";
    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 2] = 'b';
    for (size_t i = 0; i < ARRAY_LEN(expressions); i++) {
        CLEANUP(name_regex_release) struct name_regex regex = {0};
        struct err_info info = {0};
        assert_int_equal(name_regex_compile(&regex, expressions[i], "function", NULL), ERR_OK);
        assert_int_equal(name_regex_result(&regex, &info), ERR_OK);
        assert_false(name_regex_matches(&regex, text));
        if (name_regex_result(&regex, &info) != ERR_LIMIT) {
            fail_msg("\"%s\" has no end", expressions[i]);
        }
        assert_string_equal(info.text, "function: this regular expression takes too long");
        assert_false(name_regex_matches(&regex, "aay"));
    }
}

// Each match is fast enough, but a million of them exceed the budget.
static void many_names_have_one_budget(void **state)
{
    (void)state;
    CLEANUP(name_regex_release) struct name_regex regex = {0};
    assert_int_equal(name_regex_compile(&regex, "a*a*[yz]", "function", NULL), ERR_OK);
    regex.budget_ns = 20000000;
    char text[201] = "";
    memset(text, 'a', sizeof(text) - 1);
    int names = 0;
    while (name_regex_result(&regex, NULL) == ERR_OK && names < 1000000) {
        assert_false(name_regex_matches(&regex, text));
        names++;
    }
    assert_in_range(names, 2, 999999);
}

static void what_is_refused_is_reported(void **state)
{
    (void)state;
    static const struct {
        const char *expression;
        enum err code;
        const char *words;
    } cases[] = {
        {"(((a{99}){99}){99})", ERR_LIMIT, "too large"},
        {"((a|b|c|d){900}){900}", ERR_LIMIT, "too large"},
        {"((", ERR_INVALID, "'((' is not a regular expression: missing closing parenthesis"},
        {"[z-a]", ERR_INVALID, "range out of order"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(name_regex_release) struct name_regex regex = {0};
        struct err_info info = {0};
        assert_int_equal(name_regex_compile(&regex, cases[i].expression, "function", &info),
                         cases[i].code);
        if (strstr(info.text, cases[i].words) == NULL || strstr(info.text, "function: ") == NULL) {
            fail_msg("\"%s\": \"%s\" does not say \"%s\"", cases[i].expression, info.text,
                     cases[i].words);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_posix_knows_is_as_in_glibc),
        cmocka_unit_test(random_expressions_are_as_in_glibc),
        cmocka_unit_test(names_are_characters_or_bytes),
        cmocka_unit_test(nothing_matches_once_a_limit_was_reached),
        cmocka_unit_test(many_names_have_one_budget),
        cmocka_unit_test(what_is_refused_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
