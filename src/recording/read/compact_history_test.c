// SPDX-License-Identifier: MIT
// Tests of the compact history of older files: rows whose entries are implied, stored, or both
// kinds side by side, and histories that lack a chunk.
#include "recording/read/compact_history.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"

enum {
    ROWS = 6,
    NONE = REC_NONE,
};

static const struct rec_row g_rows[ROWS] = {
    {.allocations = 8, .allocated_bytes = 800, .frees = 5, .freed_bytes = 500, .temporary = 2},
    {.allocations = 4, .allocated_bytes = 40, .frees = 3, .freed_bytes = 30},
    {.allocations = 6, .allocated_bytes = 96, .frees = 6, .freed_bytes = 96, .temporary = 6},
    {0},
    {.allocations = UINT64_C(0x100000003), .allocated_bytes = 7, .frees = 3, .freed_bytes = 3},
    {.allocations = 3, .allocated_bytes = 48, .frees = 1, .freed_bytes = 16},
};

// The entries of row 1 are stored, and those of the second half of row 2.
static const struct rec_lone g_lones[ROWS] = {
    {.slice = 4, .has_one_size = 1, .lifetime_bucket = 9, .cohort_slice = 4},
    {.slice = NONE, .has_one_size = 0, .lifetime_bucket = NONE, .cohort_slice = NONE},
    {.slice = 2, .has_one_size = 2, .lifetime_bucket = 0, .cohort_slice = 2},
    {.slice = NONE, .has_one_size = 1, .lifetime_bucket = NONE, .cohort_slice = 0},
    {.slice = 0, .has_one_size = 0, .lifetime_bucket = NONE, .cohort_slice = 1},
    {.slice = NONE, .has_one_size = 1, .lifetime_bucket = 30, .cohort_slice = 5},
};

static const struct rec_cohort g_stored_cohorts[] = {{1, 3, 5, 2, 20}, {1, 3, NONE, 1, 10}};
static const struct rec_cell g_stored_cells[] = {
    {1, 3, 4, 40, 1, 10, 1}, {1, 5, 0, 0, 2, 20, 0}, {5, 5, 3, 48, 1, 16, 0}};
static const struct rec_bucket g_stored_sizes[] = {{1, 12, 4, 40}, {2, 15, 6, 96}};
static const struct rec_bucket g_stored_lifetimes[] = {{1, 1, 1, 10}, {1, 7, 2, 20}};

// Rows whose frees equal their allocations, or with more blocks than a cohort counts, have no
// implied cohort.
static const struct rec_cohort g_cohorts[] = {
    {0, 4, NONE, 3, 300}, {1, 3, 5, 2, 20}, {1, 3, NONE, 1, 10}, {5, 5, NONE, 2, 32}};
static const struct rec_cell g_cells[] = {{0, 4, 8, 800, 5, 500, 2},
                                          {1, 3, 4, 40, 1, 10, 1},
                                          {1, 5, 0, 0, 2, 20, 0},
                                          {2, 2, 6, 96, 6, 96, 6},
                                          {4, 0, UINT64_C(0x100000003), 7, 3, 3, 0},
                                          {5, 5, 3, 48, 1, 16, 0}};

static void put_table(struct table_reader *r,
                      enum rec_table_index index,
                      enum rec_form form,
                      const void *entries,
                      size_t count)
{
    const size_t bytes = count * rec_tables[index].entry_bytes;
    r->tables[index].items = malloc(bytes);
    assert_non_null(r->tables[index].items);
    memcpy(r->tables[index].items, entries, bytes);
    r->tables[index].count = count;
    r->tables[index].cap = count;
    r->tables[index].announced = count;
    r->tables[index].form = form;
    r->tables[index].is_there = true;
}

static void read_history(struct table_reader *r)
{
    *r = (struct table_reader){.is_announced = true, .budget_bytes = 1 << 20};
    put_table(r, REC_TABLE_ROWS, REC_FORM_PLAIN, g_rows, ROWS);
    put_table(r, REC_TABLE_LONES, REC_FORM_PLAIN, g_lones, ROWS);
    put_table(r, REC_TABLE_COHORTS, REC_FORM_COMPACT, g_stored_cohorts,
              ARRAY_LEN(g_stored_cohorts));
    put_table(r, REC_TABLE_CELLS, REC_FORM_COMPACT, g_stored_cells, ARRAY_LEN(g_stored_cells));
    put_table(r, REC_TABLE_SIZE_BUCKETS, REC_FORM_COMPACT, g_stored_sizes,
              ARRAY_LEN(g_stored_sizes));
    put_table(r, REC_TABLE_LIFETIME_BUCKETS, REC_FORM_COMPACT, g_stored_lifetimes,
              ARRAY_LEN(g_stored_lifetimes));
}

static void check_table(const struct table_reader *r,
                        enum rec_table_index index,
                        const void *expected,
                        size_t count)
{
    assert_int_equal(r->tables[index].count, count);
    assert_int_equal(r->tables[index].announced, count);
    assert_memory_equal(r->tables[index].items, expected, count * rec_tables[index].entry_bytes);
}

static void check_history(const struct table_reader *r)
{
    const struct rec_bucket sizes[] = {{0, rec_bucket_of(100), 8, 800},
                                       {1, 12, 4, 40},
                                       {2, 15, 6, 96},
                                       {5, rec_bucket_of(16), 3, 48}};
    static const struct rec_bucket lifetimes[] = {
        {0, 9, 5, 500}, {1, 1, 1, 10}, {1, 7, 2, 20}, {2, 0, 6, 96}, {5, 30, 1, 16}};
    check_table(r, REC_TABLE_COHORTS, g_cohorts, ARRAY_LEN(g_cohorts));
    check_table(r, REC_TABLE_CELLS, g_cells, ARRAY_LEN(g_cells));
    check_table(r, REC_TABLE_SIZE_BUCKETS, sizes, ARRAY_LEN(sizes));
    check_table(r, REC_TABLE_LIFETIME_BUCKETS, lifetimes, ARRAY_LEN(lifetimes));
}

static void implied_entries_stand_between_the_stored_ones(void **state)
{
    (void)state;
    struct table_reader r;
    read_history(&r);
    assert_int_equal(compact_history_restore(&r), ERR_OK);
    check_history(&r);
    table_reader_release(&r);
}

// Cells of the flowing form lack the frees of the cohorts, which include the implied ones.
static void flowing_cells_get_the_frees_of_the_cohorts(void **state)
{
    (void)state;
    struct table_reader r;
    read_history(&r);
    struct rec_cell *cells = r.tables[REC_TABLE_CELLS].items;
    r.tables[REC_TABLE_CELLS].form = REC_FORM_FLOWING;
    cells[0].frees += 2 + 1; // both cohorts of row 1 are born in slice 3
    cells[0].freed_bytes += 20 + 10;
    cells[1].frees -= 2; // and one dies in slice 5
    cells[1].freed_bytes -= 20;
    cells[2].frees += 2; // the implied cohort of row 5
    cells[2].freed_bytes += 32;
    assert_int_equal(compact_history_restore(&r), ERR_OK);
    check_history(&r);
    table_reader_release(&r);
}

// A partial history would pass for a whole one, so it is empty.
static void a_history_without_a_chunk_is_empty(void **state)
{
    (void)state;
    static const enum rec_table_index tables[] = {
        REC_TABLE_ROWS,  REC_TABLE_LONES,        REC_TABLE_COHORTS,
        REC_TABLE_CELLS, REC_TABLE_SIZE_BUCKETS, REC_TABLE_LIFETIME_BUCKETS};
    for (size_t i = 0; i < ARRAY_LEN(tables) + 2; i++) {
        struct table_reader r;
        read_history(&r);
        if (i < ARRAY_LEN(tables)) {
            r.tables[tables[i]].announced++;
        } else if (i == ARRAY_LEN(tables)) {
            r.is_announced = false;
        } else {
            r.budget_bytes = 100; // too little
        }
        const bool is_limit = i == ARRAY_LEN(tables) + 1;
        assert_int_equal(compact_history_restore(&r), is_limit ? ERR_LIMIT : ERR_OK);
        for (size_t at = 2; at < ARRAY_LEN(tables); at++) {
            assert_int_equal(r.tables[tables[at]].count, 0);
            assert_null(r.tables[tables[at]].items);
        }
        table_reader_release(&r);
    }
}

// Without any sign of a compact history, nothing changes.
static void plain_tables_stay_as_they_are(void **state)
{
    (void)state;
    struct table_reader r;
    read_history(&r);
    free(r.tables[REC_TABLE_LONES].items);
    r.tables[REC_TABLE_LONES] = (__typeof__(r.tables[0])){0};
    for (size_t i = 0; i < REC_TABLE_STORED_COUNT; i++) {
        r.tables[i].form = REC_FORM_PLAIN;
    }
    assert_int_equal(compact_history_restore(&r), ERR_OK);
    check_table(&r, REC_TABLE_CELLS, g_stored_cells, ARRAY_LEN(g_stored_cells));
    table_reader_release(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(implied_entries_stand_between_the_stored_ones),
        cmocka_unit_test(flowing_cells_get_the_frees_of_the_cohorts),
        cmocka_unit_test(a_history_without_a_chunk_is_empty),
        cmocka_unit_test(plain_tables_stay_as_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
