// SPDX-License-Identifier: MIT
// Tests of request: which parameters it accepts or refuses, and which one an error names.
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

#define EVERY_PARAM (~(uint64_t)0 >> (64 - PARAM_COUNT))

// A request together with the texts that it borrows.
struct parsed {
    char query[REQUEST_TARGET_MAX];
    struct request_args args;
    struct request request;
    const char *parameter;
    struct err_info info;
};

static enum err parse(struct parsed *out, const char *query, uint64_t allowed)
{
    *out = (struct parsed){0};
    assert_true(strlen(query) < sizeof(out->query));
    memcpy(out->query, query, strlen(query));
    request_args_split(&out->args, out->query);
    return request_parse(&out->args, allowed, &out->request, &out->parameter, &out->info);
}

static void texts_are_kept_as_they_are(void **state)
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
        {"function=\xc3\xa4&limit=5", "\xc3\xa4"},
        {"limit=5&function=\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"},
        {"function=x=y", "x=y"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct parsed got;
        if (parse(&got, cases[i].query, EVERY_PARAM) != ERR_OK) {
            fail_msg("\"%s\": %s", cases[i].query, got.info.text);
        }
        const char *text = request_text(&got.request, PARAM_FUNCTION);
        if (cases[i].text == NULL ? text != NULL
                                  : (text == NULL || strcmp(text, cases[i].text) != 0)) {
            fail_msg("\"%s\" gives \"%s\", not \"%s\"", cases[i].query, text != NULL ? text : "-",
                     cases[i].text != NULL ? cases[i].text : "-");
        }
        assert_null(got.parameter);
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
        {"sort=live_bytes", PARAM_SORT, COST_LEAKED_BYTES},
        {"costs=peak_bytes,allocations", PARAM_COSTS,
         (uint64_t)1 << COST_PEAK_BYTES | (uint64_t)1 << COST_ALLOCATIONS},
        {"costs=all", PARAM_COSTS, ((uint64_t)1 << COST_COUNT) - 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct parsed got;
        if (parse(&got, cases[i].query, EVERY_PARAM) != ERR_OK) {
            fail_msg("\"%s\": %s", cases[i].query, got.info.text);
        }
        assert_true(request_has(&got.request, cases[i].param));
        uint64_t number = request_number(&got.request, cases[i].param, 4711);
        if (number != cases[i].number) {
            fail_msg("\"%s\" gives %lu, not %lu", cases[i].query, (unsigned long)number,
                     (unsigned long)cases[i].number);
        }
        assert_int_equal(request_number(&got.request, PARAM_TOP, 4711), 4711);
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
        struct parsed got;
        assert_int_equal(parse(&got, cases[i].query, EVERY_PARAM), ERR_OK);
        double difference = got.request.values[PARAM_MIN_SHARE].fraction - cases[i].fraction;
        assert_true(difference < 1e-12 && difference > -1e-12);
    }
}

static void what_makes_no_sense_is_refused_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *query;
        const char *parameter; // the wrong one; NULL: none
        const char *words;
    } cases[] = {
        {"beauty=1", NULL, "'beauty'"},
        {"=1", NULL, "unknown parameter"},
        {"Limit=1", NULL, "'Limit'"},
        {"limi=1", NULL, "'limi'"},
        {"function=a&function=b", "function", "twice"},
        {"function=&function=b", "function", "twice"},
        {"limit=", NULL, NULL},
        {"limit=x", "limit", "'x' is not a number"},
        {"limit=-1", "limit", "not a number"},
        {"limit=1.5", "limit", "not a number"},
        {"limit=+1", "limit", "not a number"},
        {"limit=0x10", "limit", "not a number"},
        {"limit=1000001", "limit", "not between 0 and 1000000"},
        {"limit=99999999999999999999999", "limit", "not between"},
        {"process=0", "process", "not between 1 and"},
        {"from_ms=18446744073709551616", "from_ms", "not between"},
        {"diff=2", "diff", "not between 0 and 1"},
        {"min_share=1.1", "min_share", "not a fraction"},
        {"min_share=1e-3", "min_share", "not a fraction"},
        {"min_share=0.5.5", "min_share", "not a fraction"},
        {"min_share=-0.5", "min_share", "not a fraction"},
        {"direction=sideways", "direction", "'sideways'"},
        {"classes=in_in,,in_out", "classes", "''"},
        {"classes=in", "classes", "'in'"},
        {"sort=peak", "sort", "'peak'"},
        {"costs=all,peak_bytes", "costs", "'all'"},
        {"function=\xff", "function", "not UTF-8"},
        {"function=\xc3", "function", "not UTF-8"},
        {"function=\xc0\x80", "function", "not UTF-8"},
        {"function=\xed\xa0\x80", "function", "not UTF-8"},
        {"function=\xf4\x90\x80\x80", "function", "not UTF-8"},
        {"function=\x80", "function", "not UTF-8"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct parsed got;
        enum err problem = parse(&got, cases[i].query, EVERY_PARAM);
        const char *parameter = got.parameter;
        if (cases[i].words == NULL) {
            assert_int_equal(problem, ERR_OK);
            continue;
        }
        bool is_blamed = cases[i].parameter == NULL
                             ? parameter == NULL
                             : parameter != NULL && strcmp(parameter, cases[i].parameter) == 0;
        if (problem != ERR_INVALID || !is_blamed || strstr(got.info.text, cases[i].words) == NULL) {
            fail_msg("\"%s\": %s, \"%s\", blames %s", cases[i].query, err_name(problem),
                     got.info.text, parameter != NULL ? parameter : "nothing");
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
        size_t most; // accepted parts
    } cases[] = {{"function=", "x", REQUEST_VALUE_MAX},
                 {"function_regex=", "x", REQUEST_REGEX_MAX}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        for (size_t over = 0; over < 2; over++) {
            CLEANUP(strbuf_release) struct strbuf query = {0};
            struct parsed got;
            strbuf_append_text(&query, cases[i].begin);
            repeat(&query, cases[i].part, cases[i].most + over);
            enum err wanted = over == 0 ? ERR_OK : ERR_LIMIT;
            enum err problem = parse(&got, strbuf_text(&query), EVERY_PARAM);
            if (problem != wanted) {
                fail_msg("%zu of \"%s%s\": %s", cases[i].most + over, cases[i].begin, cases[i].part,
                         err_name(problem));
            }
        }
    }
}

// Too many parameters is reported before errors in them.
static void parameters_are_limited_in_number(void **state)
{
    (void)state;
    struct parsed got;
    CLEANUP(strbuf_release) struct strbuf query = {0};
    repeat(&query, "&x=", REQUEST_PARAMS_MAX);
    assert_int_equal(parse(&got, strbuf_text(&query), EVERY_PARAM), ERR_INVALID);
    repeat(&query, "&x=", 1);
    assert_int_equal(parse(&got, strbuf_text(&query), EVERY_PARAM), ERR_LIMIT);
    repeat(&query, "&x=", REQUEST_PARAMS_MAX);
    assert_int_equal(parse(&got, strbuf_text(&query), EVERY_PARAM), ERR_LIMIT);
}

static void zero_bytes_are_refused(void **state)
{
    (void)state;
    struct request request;
    const char *parameter = NULL;
    struct err_info info = {0};
    struct request_args args = {0};
    request_args_add(
        &args,
        &(struct request_arg){.name = "function", .name_len = 8, .value = "a\0b", .value_len = 3});
    assert_int_equal(request_parse(&args, EVERY_PARAM, &request, &parameter, &info), ERR_INVALID);
    assert_string_equal(parameter, "function");
    assert_non_null(strstr(info.text, "zero byte"));
    assert_false(request_has(&request, PARAM_FUNCTION));
}

static void a_route_takes_its_own_parameters_only(void **state)
{
    (void)state;
    struct parsed got;
    uint64_t allowed = PARAM_BIT(PARAM_TOP) | PARAM_BIT(PARAM_BY);
    assert_int_equal(parse(&got, "top=3&by=stack", allowed), ERR_OK);
    assert_int_equal(request_number(&got.request, PARAM_BY, 0), REQUEST_BY_STACK);
    assert_int_equal(parse(&got, "limit=3", allowed), ERR_INVALID);
    assert_string_equal(got.parameter, "limit");
}

static void paths_end_at_the_question_mark(void **state)
{
    (void)state;
    assert_true(target_has_path("/a?b", "/a"));
    assert_true(target_has_path("/a", "/a"));
    assert_false(target_has_path("/ab", "/a"));
    assert_false(target_has_path("/", "/a"));
    assert_false(target_has_path("/%61", "/a"));
    assert_false(target_has_path("//a", "/a"));
}

static void escapes_are_checked(void **state)
{
    (void)state;
    static const char *const good[] = {"/a", "/a?b=%20%fF%00", "/%41"};
    static const char *const bad[] = {"%", "/a?b=%4", "/a?%zz=1", "/%%20", "/a?b=%20&c=%g0"};
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        assert_true(target_is_encoded(good[i]));
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_false(target_is_encoded(bad[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_kept_as_they_are),
        cmocka_unit_test(numbers_choices_and_lists_are_understood),
        cmocka_unit_test(fractions_need_no_locale),
        cmocka_unit_test(what_makes_no_sense_is_refused_by_name),
        cmocka_unit_test(lengths_are_limited),
        cmocka_unit_test(parameters_are_limited_in_number),
        cmocka_unit_test(zero_bytes_are_refused),
        cmocka_unit_test(a_route_takes_its_own_parameters_only),
        cmocka_unit_test(paths_end_at_the_question_mark),
        cmocka_unit_test(escapes_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
