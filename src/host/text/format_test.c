// SPDX-License-Identifier: MIT
#include "host/text/format.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "host/os/file.h"

struct unsigned_case {
    uint64_t value;
    const char *want;
};

static void check(struct human (*format)(uint64_t), const struct unsigned_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(format(cases[i].value).text, cases[i].want);
    }
}

static struct human bytes_of(const double *values)
{
    return format_bytes((uint64_t)values[0]);
}

static struct human count_of(const double *values)
{
    return format_count((uint64_t)values[0]);
}

static struct human ms_of(const double *values)
{
    return format_duration((uint64_t)values[0] * 1000000);
}

static struct human percent_of(const double *values)
{
    return format_percent((uint64_t)values[0], (uint64_t)values[1]);
}

static struct human percent_change_of(const double *values)
{
    return format_percent_change(values[0], values[1]);
}

static struct human percent_error_of(const double *values)
{
    return format_percent_error(values[0], values[1]);
}

static struct human rate_of(const double *values)
{
    return format_rate(values[0]);
}

static struct human byte_rate_of(const double *values)
{
    return format_byte_rate(values[0]);
}

static const struct {
    const char *name;
    struct human (*format)(const double *values);
} formats[] = {
    {"bytes", bytes_of},
    {"count", count_of},
    {"ms", ms_of},
    {"percent", percent_of},
    {"percent_change", percent_change_of},
    {"percent_error", percent_error_of},
    {"rate", rate_of},
    {"byte_rate", byte_rate_of},
};

// Check a line "rate<tab>204.5<tab>205", and count it.
static void check_line(const char *line, size_t *counts)
{
    char name[32];
    char arguments[64];
    char want[64];
    double values[2] = {0};
    assert_int_equal(3, sscanf(line, "%31[^\t]\t%63[^\t]\t%63[^\n]", name, arguments, want));
    char *rest = NULL;
    values[0] = strtod(arguments, &rest);
    values[1] = strtod(rest, NULL);
    for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
        if (strcmp(formats[i].name, name) == 0) {
            const struct human got = formats[i].format(values);
            const char *text = got.text[0] == '\0' ? "(nothing)" : got.text;
            if (strcmp(text, want) != 0) {
                fail_msg("%s of %s is %s, not %s", name, arguments, text, want);
            }
            counts[i]++;
            return;
        }
    }
    fail_msg("%s is no format", name);
}

// The cases that the viewer's test reads, too.
static void numbers_read_as_in_the_viewer(void **state)
{
    (void)state;
    size_t counts[ARRAY_LEN(formats)] = {0};
    FILE *file CLEANUP(stream_closep) = fopen(CAIRN_FORMAT_CASES, "re");
    char line[256];
    assert_non_null(file);
    while (fgets(line, sizeof(line), file) != NULL) {
        if (line[0] != '#') {
            check_line(line, counts);
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
        assert_true(counts[i] > 0);
    }
}

static void the_largest_numbers_fit(void **state)
{
    (void)state;
    static const uint64_t s = 1000000000;
    const struct unsigned_case sizes[] = {{1099511627776, "1.00 TiB"}, {UINT64_MAX, "16.0 EiB"}};
    const struct unsigned_case counts[] = {{UINT64_MAX, "18,446,744,073,709,551,615"}};
    const struct unsigned_case durations[] = {
        {86399 * s, "1 d 00 h"}, {273600 * s, "3 d 04 h"}, {UINT64_MAX, "213504 d 00 h"}};
    check(format_bytes, sizes, ARRAY_LEN(sizes));
    check(format_count, counts, ARRAY_LEN(counts));
    check(format_duration, durations, ARRAY_LEN(durations));
    assert_string_equal(format_percent(UINT64_MAX - 1, UINT64_MAX).text, ">99.9%");
    assert_string_equal(format_rate(1e30).text, "18,446,744,073,709,551,615");
}

static void things_agree_with_their_number(void **state)
{
    (void)state;
    assert_string_equal(format_things(0, "block", "blocks").text, "0 blocks");
    assert_string_equal(format_things(1, "block", "blocks").text, "1 block");
    assert_string_equal(format_things(2, "process was", "processes were").text, "2 processes were");
    assert_string_equal(format_things(1234567, "block", "blocks").text, "1,234,567 blocks");
    assert_string_equal(format_things(UINT64_MAX, "allocation", "allocations").text,
                        "18,446,744,073,709,551,615 allocations");
    static const char longest[] = "a phrase that is longer than the room of eighty bytes that a "
                                  "figure and its name have together";
    assert_memory_equal(format_things(1, longest, longest).text, "1 a phrase", 10);
}

static void durations_below_a_millisecond_have_units_of_their_own(void **state)
{
    (void)state;
    static const struct unsigned_case cases[] = {
        {0, "0 ns"}, {999, "999 ns"}, {1234, "1.23 us"}, {999999, "1.00 ms"}};
    check(format_duration, cases, ARRAY_LEN(cases));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_read_as_in_the_viewer),
        cmocka_unit_test(the_largest_numbers_fit),
        cmocka_unit_test(things_agree_with_their_number),
        cmocka_unit_test(durations_below_a_millisecond_have_units_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
