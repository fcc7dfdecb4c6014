// SPDX-License-Identifier: MIT
#include "host/containers/string_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static uint32_t interned(struct string_table *table, const char *text)
{
    uint32_t id = UINT32_MAX;
    assert_int_equal(string_table_intern_text(table, text, &id), ERR_OK);
    return id;
}

static void an_empty_table_knows_the_empty_string(void **state)
{
    (void)state;
    struct string_table table = {0};
    uint32_t id = 7;
    assert_int_equal(string_table_count(&table), 1);
    assert_string_equal(string_table_get(&table, 0), "");
    assert_string_equal(string_table_get(&table, 1), "");
    assert_string_equal(string_table_get(&table, UINT32_MAX), "");
    assert_int_equal(string_table_find(&table, NULL, 0, &id), ERR_OK);
    assert_int_equal(id, 0);
    assert_int_equal(string_table_find(&table, "a", 1, &id), ERR_NOT_FOUND);
    assert_int_equal(interned(&table, NULL), 0);
    assert_int_equal(interned(&table, ""), 0);
    assert_int_equal(string_table_count(&table), 1);
    string_table_release(&table);
}

static void a_prefix_ends_at_the_first_zero(void **state)
{
    (void)state;
    static const struct {
        struct bytes text;
        const char *prefix;
    } cases[] = {
        {{(const uint8_t *)"abc", 3}, "abc"},
        {{(const uint8_t *)"ab\0c", 4}, "ab"},
        {{(const uint8_t *)"\0c", 2}, ""},
        {{NULL, 0}, ""},
    };
    struct string_table table = {0};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint32_t id = 7;
        assert_int_equal(string_table_intern_prefix(&table, cases[i].text, &id), ERR_OK);
        assert_string_equal(string_table_get(&table, id), cases[i].prefix);
        assert_int_equal(string_table_get_bytes(&table, id).len, strlen(cases[i].prefix));
    }
    string_table_release(&table);
}

static void ids_count_up_and_repeat(void **state)
{
    (void)state;
    enum {
        COUNT = 20000
    };
    struct string_table table = {0};
    char text[32];
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 1; i <= COUNT; i++) {
            (void)snprintf(text, sizeof(text), "name%u", i * 7919);
            assert_int_equal(interned(&table, text), i);
        }
    }
    assert_int_equal(string_table_count(&table), COUNT + 1);
    for (uint32_t i = 1; i <= COUNT; i++) {
        (void)snprintf(text, sizeof(text), "name%u", i * 7919);
        assert_string_equal(string_table_get(&table, i), text);
        assert_int_equal(string_table_get_bytes(&table, i).len, strlen(text));
        uint32_t found = 0;
        assert_int_equal(string_table_find(&table, text, strlen(text), &found), ERR_OK);
        assert_int_equal(found, i);
    }
    string_table_release(&table);
    string_table_release(&table);
}

static void zero_bytes_and_prefixes_are_distinct(void **state)
{
    (void)state;
    struct string_table table = {0};
    static const struct {
        const char *text;
        size_t len;
    } cases[] = {{"a", 1}, {"a\0", 2}, {"a\0b", 3}, {"ab", 2}, {"\0", 1}, {"\0\0", 2}};
    for (uint32_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint32_t id = 0;
        assert_int_equal(string_table_intern(&table, cases[i].text, cases[i].len, &id), ERR_OK);
        assert_int_equal(id, i + 1);
        struct bytes got = string_table_get_bytes(&table, id);
        assert_int_equal(got.len, cases[i].len);
        assert_memory_equal(got.data, cases[i].text, cases[i].len + 1);
    }
    string_table_release(&table);
}

static void more_than_four_gib_is_refused(void **state)
{
    (void)state;
    // The limit is checked before any read or copy. So a table with a made-up length near the limit
    // suffices; its true length is restored before its release.
    struct string_table table = {0};
    assert_int_equal(interned(&table, "first"), 1);
    size_t len = table.texts.len;
    table.texts.len = UINT32_MAX - 4;
    uint32_t id = 99;
    assert_int_equal(string_table_intern(&table, "abcd", 4, &id), ERR_LIMIT);
    assert_int_equal(id, 99);
    assert_int_equal(string_table_count(&table), 2);
    table.texts.len = len;
    string_table_release(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_table_knows_the_empty_string),
        cmocka_unit_test(a_prefix_ends_at_the_first_zero),
        cmocka_unit_test(ids_count_up_and_repeat),
        cmocka_unit_test(zero_bytes_and_prefixes_are_distinct),
        cmocka_unit_test(more_than_four_gib_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
