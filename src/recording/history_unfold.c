// SPDX-License-Identifier: MIT
// history_unfold: see the header.
#include "recording/history_unfold.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "recording/history_rules.h"

// What is known of the rows.
struct known_rows {
    const struct rec_row *rows;
    const struct rec_lone *lones;
    uint32_t count; // that have both
};

static struct known_rows rows_of(const struct table_reader *r)
{
    const size_t rows = r->tables[REC_TABLE_ROWS].count;
    const size_t lones = r->tables[REC_TABLE_LONES].count;
    return (struct known_rows){.rows = r->tables[REC_TABLE_ROWS].items,
                               .lones = r->tables[REC_TABLE_LONES].items,
                               .count = (uint32_t)(rows < lones ? rows : lones)};
}

static uint32_t row_of(const char *entry)
{
    uint32_t row = 0;
    memcpy(&row, entry, sizeof(row));
    return row;
}

// The row of the last entry that was read; 0 if there is none.
static uint32_t last_row(const struct table_reader *r, size_t index)
{
    const size_t count = r->tables[index].count;
    const char *items = r->tables[index].items;
    return count == 0 ? 0 : row_of(items + (count - 1) * rec_tables[index].entry_bytes);
}

static bool is_whole(const struct table_reader *r, size_t index)
{
    return r->is_announced && r->tables[index].count >= r->tables[index].announced;
}

// The first row of which the table does not say everything; REC_NONE if it does of all. Of the last
// row that it names it may lack the end.
static uint32_t first_unknown_row(const struct table_reader *r, size_t index)
{
    const bool has_lones = is_whole(r, REC_TABLE_LONES);
    const uint32_t end = has_lones ? REC_NONE : (uint32_t)r->tables[REC_TABLE_LONES].count;
    if (is_whole(r, index)) {
        return end;
    }
    const uint32_t own = r->tables[index].count == 0 ? 0 : last_row(r, index) + 1;
    return own < end ? own : end;
}

static bool is_folded(const struct table_reader *r, size_t index)
{
    return r->tables[index].count == 0 || r->tables[index].form != REC_FORM_PLAIN;
}

static size_t count_implied(const struct known_rows *known, enum rec_table_index index, size_t end)
{
    struct rec_cell entry; // the largest of them
    size_t count = 0;
    for (uint32_t row = 0; row < known->count && row < end; row++) {
        count += history_imply(index, known->lones + row, known->rows + row, row, &entry);
    }
    return count;
}

// Merges what the lones say of the rows before `end` with the entries that were read, into `out`.
// Returns how many that makes.
static size_t merge(const struct table_reader *r,
                    const struct known_rows *known,
                    enum rec_table_index index,
                    uint32_t end,
                    char *out)
{
    const size_t entry_bytes = rec_tables[index].entry_bytes;
    const char *read = r->tables[index].items;
    size_t left = r->tables[index].count;
    char *at = out;
    for (uint32_t row = 0; row < known->count && row < end; row++) {
        for (; left > 0 && row_of(read) < row; left--, read += entry_bytes, at += entry_bytes) {
            memcpy(at, read, entry_bytes);
        }
        at +=
            history_imply(index, known->lones + row, known->rows + row, row, at) ? entry_bytes : 0;
    }
    for (; left > 0 && (end == REC_NONE || row_of(read) < end);
         left--, read += entry_bytes, at += entry_bytes) {
        memcpy(at, read, entry_bytes);
    }
    return (size_t)(at - out) / entry_bytes;
}

// Completes one table up to row `end`.
static enum err unfold_table(struct table_reader *r, enum rec_table_index index, uint32_t end)
{
    const struct known_rows known = rows_of(r);
    const size_t entry_bytes = rec_tables[index].entry_bytes;
    const size_t implied = count_implied(&known, index, end);
    const size_t most = r->tables[index].count + implied;
    if (most == 0 || (implied == 0 && end == REC_NONE)) {
        return ERR_OK; // it is as it should be
    }
    TRY(table_reader_charge(r, implied * entry_bytes));
    // An entry more: where nothing is implied, what would be is written and not counted.
    char *items = malloc((most + 1) * entry_bytes);
    if (items == NULL) {
        return ERR_NO_MEMORY;
    }
    if (r->is_announced) {
        r->tables[index].announced += count_implied(&known, index, REC_NONE);
    }
    const size_t count = merge(r, &known, index, end, items);
    free(r->tables[index].items);
    r->tables[index].items = items;
    r->tables[index].count = count;
    r->tables[index].cap = most + 1;
    return ERR_OK;
}

// Gives the cells back what the cohorts say of their frees.
static enum err take_flow(struct table_reader *r)
{
    CLEANUP(history_flow_release) struct history_flow flow = {0};
    struct rec_cell *cells = r->tables[REC_TABLE_CELLS].items;
    TRY(history_flow_begin(&flow, r->tables[REC_TABLE_COHORTS].items,
                           r->tables[REC_TABLE_COHORTS].count));
    for (size_t i = 0; i < r->tables[REC_TABLE_CELLS].count; i++) {
        const struct flow_change change = history_flow_at(&flow, cells + i);
        cells[i].frees -= change.blocks;
        cells[i].freed_bytes -= change.bytes;
    }
    return ERR_OK;
}

static enum err unfold_all(struct table_reader *r)
{
    // Of the last row of cohorts that end too early, some may be missing.
    const bool has_cohorts = is_whole(r, REC_TABLE_COHORTS);
    const uint32_t cohorts_end = has_cohorts ? REC_NONE : last_row(r, REC_TABLE_COHORTS);
    static const enum rec_table_index tables[] = {
        REC_TABLE_COHORTS, REC_TABLE_CELLS, REC_TABLE_SIZE_BUCKETS, REC_TABLE_LIFETIME_BUCKETS};
    for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
        uint32_t end = first_unknown_row(r, tables[i]);
        if (r->tables[tables[i]].form == REC_FORM_FLOWING) {
            TRY(take_flow(r));
            end = cohorts_end < end ? cohorts_end : end;
        }
        if (is_folded(r, tables[i])) {
            TRY(unfold_table(r, tables[i], end));
        }
    }
    return ERR_OK;
}

void history_forget(struct table_reader *r)
{
    for (size_t i = 0; i < REC_TABLE_COUNT; i++) {
        if (is_history_table((enum rec_table_index)i)) {
            free(r->tables[i].items);
            r->tables[i].items = NULL;
            r->tables[i].count = 0;
            r->tables[i].cap = 0;
        }
    }
}

enum err history_unfold(struct table_reader *r)
{
    const enum err err = unfold_all(r);
    if (err != ERR_OK) {
        history_forget(r);
    }
    return err;
}
