// SPDX-License-Identifier: MIT
#include "recording/read/compact_history.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

// Each function sets `out` to the only entry of row `number` in a table. It returns false if the
// row has none, or if the file holds the row's entries.
static bool
make_cohort(const struct rec_lone *lone, const struct rec_row *row, uint32_t number, void *out)
{
    const uint64_t blocks = row->allocations - row->frees;
    const struct rec_cohort cohort = {.row = number,
                                      .born_slice = lone->cohort_slice,
                                      .freed_slice = REC_NONE,
                                      .blocks = (uint32_t)blocks,
                                      .bytes = row->allocated_bytes - row->freed_bytes};
    memcpy(out, &cohort, sizeof(cohort));
    return lone->cohort_slice != REC_NONE && row->allocations > row->frees && blocks <= UINT32_MAX;
}

static bool
make_cell(const struct rec_lone *lone, const struct rec_row *row, uint32_t number, void *out)
{
    const struct rec_cell cell = {.row = number,
                                  .slice = lone->slice,
                                  .allocations = row->allocations,
                                  .allocated_bytes = row->allocated_bytes,
                                  .frees = row->frees,
                                  .freed_bytes = row->freed_bytes,
                                  .temporary = row->temporary};
    memcpy(out, &cell, sizeof(cell));
    return lone->slice != REC_NONE;
}

static bool
make_size(const struct rec_lone *lone, const struct rec_row *row, uint32_t number, void *out)
{
    if (lone->has_one_size != 1 || row->allocations == 0) {
        return false;
    }
    const struct rec_bucket bucket = {.row = number,
                                      .bucket =
                                          rec_bucket_of(row->allocated_bytes / row->allocations),
                                      .count = row->allocations,
                                      .bytes = row->allocated_bytes};
    memcpy(out, &bucket, sizeof(bucket));
    return true;
}

static bool
make_lifetime(const struct rec_lone *lone, const struct rec_row *row, uint32_t number, void *out)
{
    const struct rec_bucket bucket = {.row = number,
                                      .bucket = lone->lifetime_bucket,
                                      .count = row->frees,
                                      .bytes = row->freed_bytes};
    memcpy(out, &bucket, sizeof(bucket));
    return lone->lifetime_bucket != REC_NONE;
}

// Restoring cells needs the cohorts, so the cohorts come first.
static const struct compact_table {
    enum rec_table_index index;
    bool (*make)(const struct rec_lone *lone,
                 const struct rec_row *row,
                 uint32_t number,
                 void *out);
} compact_tables[] = {
    {REC_TABLE_COHORTS, make_cohort},
    {REC_TABLE_CELLS, make_cell},
    {REC_TABLE_SIZE_BUCKETS, make_size},
    {REC_TABLE_LIFETIME_BUCKETS, make_lifetime},
};

static uint32_t row_of(const char *entry)
{
    uint32_t row = 0;
    memcpy(&row, entry, sizeof(row));
    return row;
}

// Insert the entries that the rows imply between those of the file.
static enum err merge_implied(struct table_reader *r, const struct compact_table *table)
{
    const size_t entry_bytes = rec_tables[table->index].entry_bytes;
    const struct rec_row *rows = r->tables[REC_TABLE_ROWS].items;
    const struct rec_lone *lones = r->tables[REC_TABLE_LONES].items;
    const size_t row_count = r->tables[REC_TABLE_ROWS].count;
    const size_t most = r->tables[table->index].count + row_count;
    const char *read = r->tables[table->index].items;
    size_t left = r->tables[table->index].count;
    TRY(table_reader_charge(r, row_count * entry_bytes));
    char *items = malloc((most + 1) * entry_bytes);
    if (items == NULL) {
        return ERR_NO_MEMORY;
    }
    char *at = items;
    for (uint32_t row = 0; row <= row_count; row++) {
        for (; left > 0 && (row == row_count || row_of(read) < row); left--, read += entry_bytes) {
            memcpy(at, read, entry_bytes);
            at += entry_bytes;
        }
        if (row < row_count && table->make(lones + row, rows + row, row, at)) {
            at += entry_bytes;
        }
    }
    free(r->tables[table->index].items);
    r->tables[table->index].items = items;
    r->tables[table->index].count = (size_t)(at - items) / entry_bytes;
    r->tables[table->index].announced = r->tables[table->index].count;
    return ERR_OK;
}

// Return the cell of a row in a slice, NULL if there is none. The cells of a hostile file may be
// unsorted; then the search may miss some.
static struct rec_cell *find_cell(const struct table_reader *r, uint32_t row, uint32_t slice)
{
    struct rec_cell *cells = r->tables[REC_TABLE_CELLS].items;
    size_t first = 0;
    for (size_t count = r->tables[REC_TABLE_CELLS].count; count > 0; count /= 2) {
        const struct rec_cell *middle = cells + first + count / 2;
        if (middle->row == row && middle->slice == slice) {
            return cells + first + count / 2;
        }
        if (middle->row < row || (middle->row == row && middle->slice < slice)) {
            first += count / 2 + 1;
            count--;
        }
    }
    return NULL;
}

// Add the frees of the cohorts to the cells, which lack them in this form.
static void restore_frees(struct table_reader *r)
{
    const struct rec_cohort *cohorts = r->tables[REC_TABLE_COHORTS].items;
    for (size_t i = 0; i < r->tables[REC_TABLE_COHORTS].count; i++) {
        struct rec_cell *born = find_cell(r, cohorts[i].row, cohorts[i].born_slice);
        struct rec_cell *freed = find_cell(r, cohorts[i].row, cohorts[i].freed_slice);
        if (born != NULL) {
            born->frees -= cohorts[i].blocks;
            born->freed_bytes -= cohorts[i].bytes;
        }
        if (freed != NULL) {
            freed->frees += cohorts[i].blocks;
            freed->freed_bytes += cohorts[i].bytes;
        }
    }
}

static bool is_whole(const struct table_reader *r, enum rec_table_index index)
{
    return r->is_announced && r->tables[index].count >= r->tables[index].announced;
}

static bool is_history_whole(const struct table_reader *r)
{
    bool is_all = r->tables[REC_TABLE_LONES].count == r->tables[REC_TABLE_ROWS].count &&
                  is_whole(r, REC_TABLE_LONES) && is_whole(r, REC_TABLE_ROWS);
    for (size_t i = 0; i < ARRAY_LEN(compact_tables); i++) {
        is_all = is_all && is_whole(r, compact_tables[i].index);
    }
    return is_all;
}

static bool is_compact(const struct table_reader *r)
{
    bool is_any = r->tables[REC_TABLE_LONES].is_there || r->tables[REC_TABLE_LONES].announced > 0;
    for (size_t i = 0; i < ARRAY_LEN(compact_tables); i++) {
        is_any = is_any || r->tables[compact_tables[i].index].form != REC_FORM_PLAIN;
    }
    return is_any;
}

void history_drop(struct table_reader *r)
{
    for (size_t i = 0; i < ARRAY_LEN(compact_tables); i++) {
        free(r->tables[compact_tables[i].index].items);
        r->tables[compact_tables[i].index].items = NULL;
        r->tables[compact_tables[i].index].count = 0;
        r->tables[compact_tables[i].index].cap = 0;
    }
}

static enum err restore_tables(struct table_reader *r)
{
    for (size_t i = 0; i < ARRAY_LEN(compact_tables); i++) {
        if (r->tables[compact_tables[i].index].form == REC_FORM_FLOWING) {
            restore_frees(r);
        }
        TRY(merge_implied(r, &compact_tables[i]));
    }
    return ERR_OK;
}

enum err compact_history_restore(struct table_reader *r)
{
    if (!is_compact(r)) {
        return ERR_OK;
    }
    const bool is_all = is_history_whole(r);
    const enum err err = is_all ? restore_tables(r) : ERR_OK;
    if (!is_all || err != ERR_OK) {
        history_drop(r);
    }
    return err;
}
