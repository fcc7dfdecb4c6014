// SPDX-License-Identifier: MIT
// Tests of predicted bytes, against figures computed by hand. Writer and reader share the
// prediction, so writing and reading a file would not reveal an error in it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "recording/format/share.h"
#include "recording/format/tables.h"

static const struct rec_column *column_called(const struct rec_table *table, const char *name)
{
    for (size_t i = 0; i < table->column_count; i++) {
        if (strcmp(table->columns[i].name, name) == 0) {
            return &table->columns[i];
        }
    }
    fail_msg("no column is called %s", name);
    return NULL;
}

// The freed_bytes of a row are its frees times the mean of its allocations, rounded down at the
// end.
static void bytes_are_the_mean_times_the_blocks(void **state)
{
    (void)state;
    static const struct {
        uint64_t allocations;
        uint64_t allocated_bytes;
        uint64_t frees;
        uint64_t freed_bytes;
    } cases[] = {
        {7, 100, 5, 71}, // 71.4: not 5 * 14 = 70
        {7, 100, 7, 100},
        {7, 100, 0, 0},
        {3, 2, 2, 1}, // 1.3
        {0, 0, 0, 0},
        {10, 640, 4, 256},
        {UINT64_C(1) << 40, UINT64_C(1) << 60, UINT64_C(1) << 30, UINT64_C(1) << 50},
    };
    const struct rec_table *table = &rec_tables[REC_TABLE_ROWS];
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct rec_row row = {.allocations = cases[i].allocations,
                                    .allocated_bytes = cases[i].allocated_bytes,
                                    .frees = cases[i].frees};
        uint64_t predicted;
        rec_shares(table, column_called(table, "freed_bytes"), &row, 1, NULL, 0, &predicted);
        assert_int_equal(predicted, cases[i].freed_bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(bytes_are_the_mean_times_the_blocks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
