// SPDX-License-Identifier: MIT
// sampling_words: how rates and errors of all sizes are written.
#include "profile/accuracy/sampling.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "host/text/strbuf.h"

static void a_rate_has_no_power_of_ten(void **state)
{
    (void)state;
    static const struct {
        uint64_t allocations;
        uint64_t recorded;
        const char *expected;
    } cases[] = {
        {5, 0, "none of the"},     {5, 5, "1 of 1"},
        {123, 10, "1 of 12.3"},    {9994, 10, "1 of 999"},
        {9995, 10, "1 of 1,000"},  {2470, 1, "1 of 2,470"},
        {52089, 1, "1 of 52,089"}, {UINT64_MAX / 2048, 1, "1 of 9,007,199,254,740,992"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct sampling sampling = {.allocations = cases[i].allocations,
                                          .recorded_allocations = cases[i].recorded};
        assert_string_equal(sampling_format_rate(&sampling).text, cases[i].expected);
    }
}

static void an_error_has_no_power_of_ten(void **state)
{
    (void)state;
    static const struct {
        uint64_t bytes;
        const char *expected;
    } cases[] = {
        {64, "±0.17%,"},
        {224 << 10, "±9.9%,"},
        {226 << 10, "±10%,"},
        {512 << 10, "±15%,"},
        {24 << 20, "±104%,"},
        {64 << 20, "±170%,"},
        {0, NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct sampling sampling = {.is_sampled = true, .bytes = cases[i].bytes};
        CLEANUP(strbuf_release) struct strbuf text = {0};
        sampling_append_error(&sampling, &text);
        if (cases[i].expected == NULL) {
            assert_int_equal(text.len, 0);
        } else if (strstr(strbuf_text(&text), cases[i].expected) == NULL) {
            fail_msg("%s is not in: %s", cases[i].expected, strbuf_text(&text));
        }
    }
}

static void a_weight_of_one_is_not_said(void **state)
{
    (void)state;
    struct sampling sampling = {.is_for_all = true, .allocations = 200, .max_weight = 1};
    CLEANUP(strbuf_release) struct strbuf text = {0};
    sampling_append(&sampling, &text);
    assert_string_equal(
        strbuf_text(&text),
        "all figures are estimates because blocks were sampled (--sample): none of the "
        "allocations was recorded; the exact totals are 200 allocations and 0 bytes");
    sampling.max_weight = 2;
    sampling_append(&sampling, &text);
    assert_non_null(strstr(strbuf_text(&text), "recorded, at times only 1 of 2; the exact"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rate_has_no_power_of_ten),
        cmocka_unit_test(an_error_has_no_power_of_ten),
        cmocka_unit_test(a_weight_of_one_is_not_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
