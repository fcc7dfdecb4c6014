// SPDX-License-Identifier: MIT
// Tests of request: what the query parser takes, what it refuses, and whom it blames.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "host/text/strbuf.h"
#include "profile/model/cost.h"
#include "server/http/request.h"

#define EVERY_PARAM ((~(uint64_t)0 >> (64 - PARAM_COUNT)) & ~PARAM_BIT(PARAM_SITES_BY))

static enum err
parse(const char *query, struct request *out, const char **parameter, struct err_info *info)
{
    return request_parse(query, EVERY_PARAM, out, parameter, info);
}

static void texts_are_decoded(void **state)
{
    (void)state;
    static const struct {
        const char *query;
        const char *text; // of "function"; NULL: not given
    } cases[] = {
        {"", NULL},
        {"function=", NULL},
        {"function", NULL},
        {"&&&", NULL},
        {"function=load", "load"},
        {"function=a+b%20c", "a b c"},
        {"function=operator%28%29%2B%26%3D", "operator()+&="},
        {"function=%c3%A4&limit=5", "\xc3\xa4"},
        {"limit=5&function=%F0%9F%98%80", "\xf0\x9f\x98\x80"},
        {"function=x=y", "x=y"},
        {"function=%3cscript%3e", "<script>"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(request_release) struct request request = {0};
        const char *parameter;
        struct err_info info = {0};
        if (parse(cases[i].query, &request, &parameter, &info) != ERR_OK) {
            fail_msg("\"%s\": %s", cases[i].query, info.text);
        }
        const char *text = request_text(&request, PARAM_FUNCTION);
        if (cases[i].text == NULL ? text != NULL
                                  : (text == NULL || strcmp(text, cases[i].text) != 0)) {
            fail_msg("\"%s\" gives \"%s\", not \"%s\"", cases[i].query, text != NULL ? text : "-",
                     cases[i].text != NULL ? cases[i].text : "-");
        }
        assert_null(parameter);
    }
}

static void numbers_choices_and_lists_are_understood(void **state)
{
    (void)state;
    static const struct {
        const char *query;
        enum param param;
        uint64_t number;
    } cases[] = {
        {"limit=0", PARAM_LIMIT, 0},
        {"limit=1000000", PARAM_LIMIT, 1000000},
        {"process=4294967295", PARAM_PROCESS, 4294967295},
        {"from_ms=0009", PARAM_FROM_MS, 9},
        {"diff=1", PARAM_DIFF, 1},
        {"direction=top_down", PARAM_DIRECTION, 0},
        {"direction=bottom_up", PARAM_DIRECTION, 1},
        {"recording=old", PARAM_RECORDING, 1},
        {"classes=out_out,in_in", PARAM_CLASSES, 9},
        {"sort=leaked_bytes", PARAM_SORT, COST_LEAKED_BYTES},
        {"costs=peak_bytes%2Callocations", PARAM_COSTS,
         (uint64_t)1 << COST_PEAK_BYTES | (uint64_t)1 << COST_ALLOCATIONS},
        {"costs=all", PARAM_COSTS, ((uint64_t)1 << COST_COUNT) - 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(request_release) struct request request = {0};
        const char *parameter;
        struct err_info info = {0};
        if (parse(cases[i].query, &request, &parameter, &info) != ERR_OK) {
            fail_msg("\"%s\": %s", cases[i].query, info.text);
        }
        assert_true(request_has(&request, cases[i].param));
        uint64_t got = request_number(&request, cases[i].param, 4711);
        if (got != cases[i].number) {
            fail_msg("\"%s\" gives %lu, not %lu", cases[i].query, (unsigned long)got,
                     (unsigned long)cases[i].number);
        }
        assert_int_equal(request_number(&request, PARAM_TOP, 4711), 4711);
    }
}

static void fractions_need_no_locale(void **state)
{
    (void)state;
    static const struct {
        const char *query;
        double fraction;
    } cases[] = {{"min_share=0", 0},      {"min_share=1", 1},         {"min_share=0.5", 0.5},
                 {"min_share=.25", 0.25}, {"min_share=0.001", 0.001}, {"min_share=1.000", 1}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(request_release) struct request request = {0};
        const char *parameter;
        assert_int_equal(parse(cases[i].query, &request, &parameter, NULL), ERR_OK);
        double difference = request.values[PARAM_MIN_SHARE].fraction - cases[i].fraction;
        assert_true(difference < 1e-12 && difference > -1e-12);
    }
}

static void what_makes_no_sense_is_refused_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *query;
        const char *parameter; // to blame, NULL: none
        const char *words;
    } cases[] = {
        {"beauty=1", NULL, "\"beauty\""},
        {"=1", NULL, "no parameter"},
        {"Limit=1", NULL, "\"Limit\""},
        {"limi=1", NULL, "\"limi\""},
        {"function=a&function=b", "function", "twice"},
        {"function=&function=b", "function", "twice"},
        {"limit=", NULL, NULL},
        {"limit=x", "limit", "\"x\" is no number"},
        {"limit=-1", "limit", "no number"},
        {"limit=1.5", "limit", "no number"},
        {"limit=+1", "limit", "no number"},
        {"limit=0x10", "limit", "no number"},
        {"limit=1000001", "limit", "not between 0 and 1000000"},
        {"limit=99999999999999999999999", "limit", "too large"},
        {"process=0", "process", "not between 1 and"},
        {"from_ms=18446744073709551616", "from_ms", "too large"},
        {"diff=2", "diff", "not between 0 and 1"},
        {"min_share=1.1", "min_share", "no fraction"},
        {"min_share=1e-3", "min_share", "no fraction"},
        {"min_share=0.5.5", "min_share", "no fraction"},
        {"min_share=-0.5", "min_share", "no fraction"},
        {"direction=sideways", "direction", "\"sideways\""},
        {"classes=in_in,,in_out", "classes", "\"\""},
        {"classes=in", "classes", "\"in\""},
        {"sort=peak", "sort", "\"peak\""},
        {"costs=all,peak_bytes", "costs", "\"all\""},
        {"function=%", "function", "not well encoded"},
        {"function=%4", "function", "not well encoded"},
        {"function=%zz", "function", "not well encoded"},
        {"function=a%00b", "function", "not well encoded"},
        {"function=%ff", "function", "not UTF-8"},
        {"function=%c3", "function", "not UTF-8"},
        {"function=%c0%80", "function", "not UTF-8"},
        {"function=%ed%a0%80", "function", "not UTF-8"},
        {"function=%f4%90%80%80", "function", "not UTF-8"},
        {"function=%80", "function", "not UTF-8"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(request_release) struct request request = {0};
        const char *parameter = NULL;
        struct err_info info = {0};
        enum err problem = parse(cases[i].query, &request, &parameter, &info);
        if (cases[i].words == NULL) {
            assert_int_equal(problem, ERR_OK);
            continue;
        }
        bool is_blamed = cases[i].parameter == NULL
                             ? parameter == NULL
                             : parameter != NULL && strcmp(parameter, cases[i].parameter) == 0;
        if (problem != ERR_INVALID || !is_blamed || strstr(info.text, cases[i].words) == NULL) {
            fail_msg("\"%s\": %s, \"%s\", blames %s", cases[i].query, err_name(problem), info.text,
                     parameter != NULL ? parameter : "nothing");
        }
    }
}

static void repeat(struct strbuf *out, const char *text, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        strbuf_append_text(out, text);
    }
}

static void lengths_are_limited(void **state)
{
    (void)state;
    static const struct {
        const char *begin;
        const char *part;
        size_t most; // parts that are let in
    } cases[] = {{"function=", "x", REQUEST_VALUE_MAX},
                 {"function=", "%41", REQUEST_VALUE_MAX},
                 {"function_regex=", "x", REQUEST_REGEX_MAX},
                 {"", "&", REQUEST_PARAMS_MAX}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        for (size_t over = 0; over < 2; over++) {
            CLEANUP(request_release) struct request request = {0};
            CLEANUP(strbuf_release) struct strbuf query = {0};
            const char *parameter;
            strbuf_append_text(&query, cases[i].begin);
            repeat(&query, cases[i].part, cases[i].most + over);
            enum err wanted = over == 0 ? ERR_OK : ERR_LIMIT;
            enum err got = parse(strbuf_text(&query), &request, &parameter, NULL);
            if (got != wanted) {
                fail_msg("%zu of \"%s%s\": %s", cases[i].most + over, cases[i].begin, cases[i].part,
                         err_name(got));
            }
        }
    }
}

static void a_route_takes_its_own_parameters_only(void **state)
{
    (void)state;
    CLEANUP(request_release) struct request request = {0};
    const char *parameter;
    uint64_t allowed = PARAM_BIT(PARAM_TOP) | PARAM_BIT(PARAM_SITES_BY);
    assert_int_equal(request_parse("top=3&by=stack", allowed, &request, &parameter, NULL), ERR_OK);
    assert_int_equal(request_number(&request, PARAM_SITES_BY, 0), 1);
    assert_false(request_has(&request, PARAM_BY));
    struct request other = {0};
    assert_int_equal(request_parse("limit=3", allowed, &other, &parameter, NULL), ERR_INVALID);
    assert_int_equal(request_parse("by=function", allowed, &other, &parameter, NULL), ERR_INVALID);
}

static void targets_are_split_at_the_question_mark(void **state)
{
    (void)state;
    assert_string_equal(target_query("/a?b=c?d"), "b=c?d");
    assert_string_equal(target_query("/a"), "");
    assert_true(target_has_path("/a?b", "/a"));
    assert_true(target_has_path("/a", "/a"));
    assert_false(target_has_path("/ab", "/a"));
    assert_false(target_has_path("/", "/a"));
    assert_false(target_has_path("/%61", "/a"));
    assert_false(target_has_path("//a", "/a"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_decoded),
        cmocka_unit_test(numbers_choices_and_lists_are_understood),
        cmocka_unit_test(fractions_need_no_locale),
        cmocka_unit_test(what_makes_no_sense_is_refused_by_name),
        cmocka_unit_test(lengths_are_limited),
        cmocka_unit_test(a_route_takes_its_own_parameters_only),
        cmocka_unit_test(targets_are_split_at_the_question_mark),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
