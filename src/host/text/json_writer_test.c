// SPDX-License-Identifier: MIT
#include "host/text/json_writer.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct json_writer writer;

static void write_sample(void)
{
    json_key(&writer, "empty");
    json_begin_array(&writer);
    json_end_array(&writer);
    json_key(&writer, "list");
    json_begin_array(&writer);
    json_value_u64(&writer, 1);
    json_begin_object(&writer);
    json_end_object(&writer);
    json_begin_array(&writer);
    json_value_bool(&writer, true);
    json_value_null(&writer);
    json_end_array(&writer);
    json_value_string(&writer, NULL);
    json_end_array(&writer);
    json_key_string(&writer, "last", "x");
}

static void commas_and_breaks_are_where_they_belong(void **state)
{
    (void)state;
    CLEANUP(strbuf_release) struct strbuf out = {0};
    json_to_strbuf(&writer, &out, JSON_COMPACT);
    write_sample();
    assert_int_equal(json_finish(&writer), ERR_OK);
    assert_string_equal(strbuf_text(&out),
                        "{\"empty\":[],\"list\":[1,{},[true,null],null],\"last\":\"x\"}");
    strbuf_clear(&out);
    json_to_strbuf(&writer, &out, JSON_INDENTED);
    write_sample();
    assert_int_equal(json_finish(&writer), ERR_OK);
    assert_string_equal(strbuf_text(&out), "{\n"
                                           "  \"empty\": [],\n"
                                           "  \"list\": [\n"
                                           "    1,\n"
                                           "    {},\n"
                                           "    [\n"
                                           "      true,\n"
                                           "      null\n"
                                           "    ],\n"
                                           "    null\n"
                                           "  ],\n"
                                           "  \"last\": \"x\"\n"
                                           "}\n");
}

static void strings_are_escaped_and_always_utf8(void **state)
{
    (void)state;
    static const struct {
        const char *in;
        size_t len;
        const char *want;
    } cases[] = {
        {"plain ~", 7, "\"plain ~\""},
        {"\"\\/", 3, "\"\\\"\\\\/\""},
        {"\b\f\n\r\t", 5, "\"\\b\\f\\n\\r\\t\""},
        {"\0\x01\x1f\x7f", 4, "\"\\u0000\\u0001\\u001f\\u007f\""},
        {"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", 9, "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\""},
        {"\x80", 1, "\"\xef\xbf\xbd\""},
        {"a\xc3", 2, "\"a\xef\xbf\xbd\""},                               // truncated
        {"\xc0\x80", 2, "\"\xef\xbf\xbd\xef\xbf\xbd\""},                 // overlong zero
        {"\xe0\x9f\xbf", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""}, // overlong
        {"\xed\xa0\x80", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""}, // surrogate
        {"\xf4\x90\x80\x80z", 5, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz\""},
        {"\xe2\x82z", 3, "\"\xef\xbf\xbd\xef\xbf\xbdz\""},
        {"\xf4\x8f\xbf\xbf", 4, "\"\xf4\x8f\xbf\xbf\""},
        // What a terminal would obey: CSI, a new line, a change of direction; a tag above U+FFFF.
        {"\xc2\x9b\xc2\x85", 4, "\"\\u009b\\u0085\""},
        {"\xe2\x80\xaez", 4, "\"\\u202ez\""},
        {"\xf3\xa0\x80\x81", 4, "\"\\udb40\\udc01\""},
        {"ab\xe2\x82\xac", 4, "\"ab\xef\xbf\xbd\xef\xbf\xbd\""}, // ends within a character
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(strbuf_release) struct strbuf out = {0};
        CLEANUP(strbuf_release) struct strbuf want = {0};
        strbuf_printf(&want, "{\"key\":%s}", cases[i].want);
        json_to_strbuf(&writer, &out, JSON_COMPACT);
        json_key(&writer, "key");
        json_value_string_bytes(&writer, cases[i].in, cases[i].len);
        assert_int_equal(json_finish(&writer), ERR_OK);
        assert_string_equal(strbuf_text(&out), strbuf_text(&want));
    }
}

static void numbers_are_exact(void **state)
{
    (void)state;
    CLEANUP(strbuf_release) struct strbuf out = {0};
    json_to_strbuf(&writer, &out, JSON_COMPACT);
    json_key_array(&writer, "n");
    json_value_u64(&writer, 0);
    json_value_u64(&writer, UINT64_MAX);
    json_value_i64(&writer, INT64_MIN);
    json_value_double(&writer, 0.1);
    json_value_double(&writer, 1e300);
    json_value_double(&writer, -2.5);
    json_value_double(&writer, NAN);
    json_value_double(&writer, INFINITY);
    json_end_array(&writer);
    assert_int_equal(json_finish(&writer), ERR_OK);
    assert_string_equal(
        strbuf_text(&out),
        "{\"n\":[0,18446744073709551615,-9223372036854775808,0.1,1e+300,-2.5,null,null]}");
    static const double doubles[] = {1.0 / 3, DBL_MIN, DBL_MAX, DBL_EPSILON, 9007199254740993.0};
    for (size_t i = 0; i < ARRAY_LEN(doubles); i++) {
        strbuf_clear(&out);
        json_to_strbuf(&writer, &out, JSON_COMPACT);
        json_key_double(&writer, "n", doubles[i]);
        assert_int_equal(json_finish(&writer), ERR_OK);
        assert_true(strtod(strbuf_text(&out) + strlen("{\"n\":"), NULL) == doubles[i]);
    }
}

static void depth_and_length_have_no_limit(void **state)
{
    (void)state;
    enum {
        DEPTH = 100000
    };
    CLEANUP(strbuf_release) struct strbuf out = {0};
    json_to_strbuf(&writer, &out, JSON_COMPACT);
    json_key(&writer, "n");
    for (size_t i = 0; i < DEPTH; i++) {
        json_begin_array(&writer);
    }
    for (size_t i = 0; i < DEPTH; i++) {
        json_end_array(&writer);
    }
    assert_int_equal(json_finish(&writer), ERR_OK);
    assert_int_equal(out.len, (size_t)2 * DEPTH + strlen("{\"n\":}"));
    assert_int_equal(strspn(strbuf_text(&out) + strlen("{\"n\":"), "["), DEPTH);
}

// Each level is indented by two more, and what is longer than the buffer comes out whole.
static void long_lines_come_out_whole(void **state)
{
    (void)state;
    enum {
        DEPTH = 70,
        LENGTH = 200000,
    };
    CLEANUP(strbuf_release) struct strbuf out = {0};
    CLEANUP(strbuf_release) struct strbuf want = {0};
    CLEANUP(strbuf_release) struct strbuf text = {0};
    for (size_t i = 0; i < LENGTH; i++) {
        strbuf_append_char(&text, (char)('a' + i * 7 % 26));
    }
    json_to_strbuf(&writer, &out, JSON_INDENTED);
    json_key(&writer, "n");
    for (size_t i = 0; i < DEPTH; i++) {
        json_begin_array(&writer);
    }
    json_value_string(&writer, strbuf_text(&text));
    for (size_t i = 0; i < DEPTH; i++) {
        json_end_array(&writer);
    }
    json_key_null(&writer, "last");
    assert_int_equal(json_finish(&writer), ERR_OK);
    strbuf_append_text(&want, "{\n  \"n\": [\n");
    for (int i = 1; i < DEPTH; i++) {
        strbuf_printf(&want, "%*s[\n", 2 + 2 * i, "");
    }
    strbuf_printf(&want, "%*s\"%s\"\n", 2 + 2 * DEPTH, "", strbuf_text(&text));
    for (int i = DEPTH - 1; i >= 0; i--) {
        strbuf_printf(&want, "%*s]%s\n", 2 + 2 * i, "", i == 0 ? "," : "");
    }
    strbuf_append_text(&want, "  \"last\": null\n}\n");
    assert_true(strcmp(strbuf_text(&out), strbuf_text(&want)) == 0);
}

static bool refuse_third(void *context, const char *data, size_t len)
{
    (void)data;
    (void)len;
    size_t *calls = context;
    *calls += 1;
    return *calls < 3;
}

static void a_failing_sink_is_asked_no_more_and_reported(void **state)
{
    (void)state;
    size_t calls = 0;
    json_to_sink(&writer, refuse_third, &calls, JSON_COMPACT);
    json_key_array(&writer, "n");
    for (size_t i = 0; i < 100000; i++) {
        json_value_u64(&writer, i);
    }
    json_end_array(&writer);
    assert_int_equal(json_finish(&writer), ERR_IO);
    assert_int_equal(calls, 3);

    FILE *full = fopen("/dev/full", "w");
    assert_non_null(full);
    json_to_stream(&writer, full, JSON_COMPACT);
    json_key_string(&writer, "n", "x");
    assert_int_equal(json_finish(&writer), ERR_IO);
    (void)fclose(full);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commas_and_breaks_are_where_they_belong),
        cmocka_unit_test(strings_are_escaped_and_always_utf8),
        cmocka_unit_test(numbers_are_exact),
        cmocka_unit_test(depth_and_length_have_no_limit),
        cmocka_unit_test(long_lines_come_out_whole),
        cmocka_unit_test(a_failing_sink_is_asked_no_more_and_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
