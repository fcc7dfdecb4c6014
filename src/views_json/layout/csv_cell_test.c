// SPDX-License-Identifier: MIT
// Tests of csv_cell: texts and their cells, by RFC 4180.
#include "views_json/layout/csv_cell.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/compiler.h"

static const struct {
    const char *text;
    const char *cell;
} cases[] = {
    {"", ""},
    {"main", "main"},
    {"f(int, char)", "\"f(int, char)\""},
    {"operator\"\"_kb", "\"operator\"\"\"\"_kb\""},
    {"\",\"", "\"\"\",\"\"\""},
    {"a\nb\tc\x7f", "a b c "},
    {"=1+1", "'=1+1"},
    {"-x,y", "\"'-x,y\""},
    {"a=b", "a=b"},
    {"\xc3\xa4;", "\xc3\xa4;"},
};

static void test_cells(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char *written = NULL;
        size_t len = 0;
        FILE *out = open_memstream(&written, &len);
        assert_non_null(out);
        csv_write_text(out, cases[i].text);
        assert_int_equal(fclose(out), 0);
        assert_string_equal(written, cases[i].cell);
        free(written);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cells)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
