// SPDX-License-Identifier: MIT
// Tests of name_regex: the same answers as glibc's regexec, on a table and on random expressions;
// and no expression that keeps it busy.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <regex.h>

#include "base/compiler.h"
#include "host/text/strbuf.h"
#include "profile/select/name_regex.h"

// No line feeds, after which glibc sometimes takes ^ for true though nobody asked for lines.
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
    "\xc3\xa4\xff",
    "tab\there",
};

// -1: does not compile.
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
    uint64_t work = 0;
    int matches = name_regex_matches(&regex, text, &work);
    // The same expression answers the same again.
    assert_int_equal(name_regex_matches(&regex, text, &work), matches);
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

// Of every kind that POSIX and glibc know, the senseless ones last.
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
    "a{,2}b",
    "a{2,}b",
    "(a{1,2}){2,3}b",
    "a{0}",
    "(a|b){0}$",
    "a{0,0}b",
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
    "[[.-.]]",
    "[[=a=]]b",
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
    "\\<foo\\>",
    "\\`a",
    "b\\'",
    "a.b",
    ".",
    "..",
    "^.*$",
    "a**b",
    "(a*)*",
    "(a*)+b",
    "((a|b)*)*$",
    "x)y",
    ")",
    "a^b",
    "a$b",
    "^^a",
    "a$$",
    "\\<a",
    "(^a)",
    "(b$)|x",
    // What makes no sense.
    "(",
    "((a)",
    "[",
    "[a",
    "[z-a]",
    "*a",
    "+",
    "?",
    "a|*b",
    "(*a)",
    "^*",
    "$+",
    "\\b*",
    "{1}",
    "a{",
    "a{1",
    "a{x}",
    "a{3,2}",
    "a{1,99999}",
    "[[:nothing:]]",
    "a\\",
    "a{1}{2}b",
    "[[.ab.]]",
};

static void all_of_posix_is_as_in_glibc(void **state)
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

// Short ones, so that glibc survives them.
static void random_expressions_are_as_in_glibc(void **state)
{
    (void)state;
    static const char *const parts[] = {
        "a", "b", "ab",   ".",   "(",   ")",      "|",   "*",     "+",   "?",          "{1,2}",
        "^", "$", "[ab]", "\\b", "\\<", "[^a-b]", "\\w", "(a|b)", "{2}", "[[:space:]]"};
    for (int round = 0; round < 5000; round++) {
        CLEANUP(strbuf_release) struct strbuf expression = {0};
        unsigned count = 1 + below(7);
        for (unsigned i = 0; i < count; i++) {
            strbuf_append_text(&expression, parts[below(ARRAY_LEN(parts))]);
        }
        compare(strbuf_text(&expression));
    }
}

static void what_keeps_glibc_busy_is_answered_at_once(void **state)
{
    (void)state;
    static const char *const expressions[] = {
        "(((.{0,9}){0,9}){0,9})*y",
        "((a*)*)*x",
        "(a|aa)+$",
        "(((((a+)+)+)+)+)+z",
        "(a?){1,200}a{200}",
        "(.*){1,900}z",
        "b?(.*)((.(^^)[a-b])|\\b){1,30}z",
        "(|(|(|(|a)*)*)*)*z",
    };
    char *text = calloc(1, 20001);
    assert_non_null(text);
    memset(text, 'a', 20000);
    for (size_t i = 0; i < ARRAY_LEN(expressions); i++) {
        CLEANUP(name_regex_release) struct name_regex regex = {0};
        assert_int_equal(name_regex_compile(&regex, expressions[i], "function", NULL), ERR_OK);
        uint64_t work = 0;
        (void)name_regex_matches(&regex, text, &work); // only its work matters
        if (work > (uint64_t)20001 * NAME_REGEX_MAX_OPS) {
            fail_msg("\"%s\" ran %lu instructions", expressions[i], (unsigned long)work);
        }
    }
    free(text);
}

static void what_is_refused_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *expression;
        enum err code;
        const char *words;
    } cases[] = {
        {"(a)\\1", ERR_UNSUPPORTED, "back-references"},
        {"(((a{99}){99}){99})", ERR_LIMIT, "too large"},
        {"(a|b|c|d){1,900}", ERR_LIMIT, "too large"},
        {"a{4,30000}", ERR_LIMIT, "too large"},
        {"((", ERR_INVALID, "\"((\" is not a regular expression"},
        {"((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((a", ERR_LIMIT,
         "groups inside each other"},
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
        cmocka_unit_test(all_of_posix_is_as_in_glibc),
        cmocka_unit_test(random_expressions_are_as_in_glibc),
        cmocka_unit_test(what_keeps_glibc_busy_is_answered_at_once),
        cmocka_unit_test(what_is_refused_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
