// SPDX-License-Identifier: MIT
// Tests of tables.c: the first entry of a row, against a search one by one.
#include "recording/format/tables.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/compiler.h"

enum {
    ENTRIES_MAX = 300,
    TABLES = 2000
};

static uint32_t drawn(uint32_t below)
{
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % below;
}

static size_t first_one_by_one(const struct rec_bucket *buckets, size_t count, uint32_t row)
{
    size_t at = 0;
    while (at < count && buckets[at].row < row) {
        at++;
    }
    return at;
}

static void expect(const struct rec_bucket *buckets, size_t count, uint32_t row)
{
    assert_int_equal(rec_first_entry_of_row(buckets, count, sizeof(*buckets), row),
                     first_one_by_one(buckets, count, row));
}

// Rows with one entry each, with many, with none, and far apart.
static void the_first_entry_of_a_row_is_found(void **state)
{
    (void)state;
    static const uint32_t gaps[] = {1, 2, 3, 50, UINT32_MAX / ENTRIES_MAX};
    static struct rec_bucket buckets[ENTRIES_MAX];
    for (int table = 0; table < TABLES; table++) {
        const size_t count = drawn(ENTRIES_MAX + 1);
        const uint32_t gap = gaps[(size_t)table % ARRAY_LEN(gaps)];
        uint32_t row = drawn(2) == 0 ? 0 : drawn(gap + 1);
        for (size_t i = 0; i < count; i++) {
            row += drawn(3) == 0 ? 0 : drawn(gap);
            buckets[i].row = row;
        }
        expect(buckets, count, 0);
        expect(buckets, count, UINT32_MAX);
        for (int i = 0; i < 20; i++) {
            expect(buckets, count, drawn(row + 2));
        }
        for (size_t i = 0; i < count; i += 7) {
            expect(buckets, count, buckets[i].row);
            expect(buckets, count, buckets[i].row + 1);
        }
    }
    expect(buckets, 0, 5);
}

static void all_rows_start_where_a_search_finds_them(void **state)
{
    (void)state;
    static struct rec_bucket buckets[ENTRIES_MAX];
    CLEANUP(u32_vec_release) struct u32_vec starts = {0};
    for (int table = 0; table < TABLES / 10; table++) {
        const size_t count = drawn(ENTRIES_MAX + 1);
        uint32_t row = drawn(3);
        for (size_t i = 0; i < count; i++) {
            row += drawn(3) == 0 ? 0 : drawn(4);
            buckets[i].row = row;
        }
        const size_t row_count = row + 1 + drawn(3);
        assert_int_equal(rec_row_starts(buckets, count, sizeof(buckets[0]), row_count, &starts),
                         ERR_OK);
        assert_int_equal(starts.len, row_count + 1);
        for (uint32_t i = 0; i < row_count; i++) {
            assert_int_equal(starts.items[i], first_one_by_one(buckets, count, i));
        }
        assert_int_equal(starts.items[row_count], count);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_entry_of_a_row_is_found),
        cmocka_unit_test(all_rows_start_where_a_search_finds_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
