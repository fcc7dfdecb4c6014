// SPDX-License-Identifier: MIT
#include "aggregate/totals/row_history.h"

#include <stdlib.h>
#include <string.h>

#include "aggregate/totals/row_cohorts.h"
#include "base/compiler.h"
#include "base/minmax.h"

static bool is_listed(const struct row_table *table, uint32_t row)
{
    return table->extras.items[row].cells.latest != CELL_NONE;
}

// Append the row's cells to `out`.
static enum err gather_cells(const struct row_table *table, uint32_t row, struct rec_cell_vec *out)
{
    return cell_table_collect(&table->cells, &table->extras.items[row].cells,
                              table->rows.items + row, row, table->cell_shift, out);
}

// Collect the next row's cells. Cells of listed rows were gathered before.
static enum err collect_cells(struct row_history *h, uint32_t row)
{
    rec_cell_vec_clear(&h->cells);
    h->run_first = h->run_end;
    if (!is_listed(h->table, row)) {
        return gather_cells(h->table, row, &h->cells);
    }
    while (h->run_end < h->listed.len && h->listed.items[h->run_end].row == row) {
        h->run_end++;
    }
    return ERR_OK;
}

// Return whether all blocks of the row were freed in the only slice that it was active in.
static bool has_no_cohorts(const struct row_table *table, uint32_t row)
{
    const struct rec_row *r = table->rows.items + row;
    return r->allocations == r->frees && !is_listed(table, row);
}

// Add the cells of a row with cohorts; a listed row keeps its cells.
static enum err add_cells(struct row_history *h, struct row_part *part)
{
    const struct row_table *table = h->table;
    struct rec_cell_vec *cells = is_listed(table, part->row) ? &h->listed : &h->cells;
    rec_cell_vec_clear(&h->cells);
    const size_t before = cells->len;
    TRY(gather_cells(table, part->row, cells));
    part->cells = cells->items + before;
    part->cell_count = cells->len - before;
    return ERR_OK;
}

static void free_cohorts(struct row_cohorts **made)
{
    if (*made != NULL) {
        row_cohorts_release(*made);
        free(*made);
    }
}

static enum err make_cohorts(struct row_history *h)
{
    CLEANUP(rec_cohort_vec_release) struct rec_cohort_vec freed = {0};
    CLEANUP(free_cohorts) struct row_cohorts *made = calloc(1, sizeof(*made));
    const struct row_table *table = h->table;
    size_t at = 0;
    if (made == NULL) {
        return ERR_NO_MEMORY;
    }
    TRY(cohort_table_collect(&h->table->cohorts, &freed));
    TRY(rec_cell_vec_reserve(&h->listed, cell_table_count(&table->cells)));
    for (uint32_t row = 0; row < table->rows.len; row++) {
        struct row_part part = {.row = row, .shift = table->cohort_shift};
        part.freed = freed.items != NULL ? freed.items + at : NULL;
        for (; at < freed.len && freed.items[at].row == row; at++) {
            part.freed_count++;
        }
        if (part.freed_count > 0 || !has_no_cohorts(table, row)) {
            TRY(add_cells(h, &part));
            TRY(row_cohorts_add(made, &part, &h->cohorts));
        }
    }
    return ERR_OK;
}

static enum err collect_sizes(struct row_history *h, uint32_t row)
{
    const struct rec_row *r = h->table->rows.items + row;
    rec_bucket_vec_clear(&h->buckets);
    return bucket_set_collect(&h->table->extras.items[row].histograms[ROW_ALLOCATED], row,
                              r->allocations, r->allocated_bytes, &h->buckets);
}

static enum err collect_lifetimes(struct row_history *h, uint32_t row)
{
    const struct rec_row *r = h->table->rows.items + row;
    rec_bucket_vec_clear(&h->buckets);
    return bucket_set_collect(&h->table->extras.items[row].histograms[ROW_FREED], row, r->frees,
                              r->freed_bytes, &h->buckets);
}

static size_t count_cells(const struct row_history *h)
{
    const struct row_table *table = h->table;
    size_t count = cell_table_count(&table->cells);
    for (size_t i = 0; i < table->rows.len; i++) {
        count += table->rows.items[i].allocations > 0 &&
                 table->extras.items[i].cells.latest == CELL_NONE;
    }
    return count;
}

static size_t count_sizes(const struct row_history *h)
{
    const struct row_table *table = h->table;
    size_t count = 0;
    for (size_t i = 0; i < table->rows.len; i++) {
        count += bucket_set_count(&table->extras.items[i].histograms[ROW_ALLOCATED],
                                  table->rows.items[i].allocations);
    }
    return count;
}

static size_t count_lifetimes(const struct row_history *h)
{
    const struct row_table *table = h->table;
    size_t count = 0;
    for (size_t i = 0; i < table->rows.len; i++) {
        count += bucket_set_count(&table->extras.items[i].histograms[ROW_FREED],
                                  table->rows.items[i].frees);
    }
    return count;
}

// The entries of a row in a table.
struct row_entries {
    const void *items;
    size_t count;
};

static struct row_entries made_cells(const struct row_history *h)
{
    return h->cells.len > 0 || h->listed.len == 0 // which has no memory then
               ? (struct row_entries){h->cells.items, h->cells.len}
               : (struct row_entries){h->listed.items + h->run_first, h->run_end - h->run_first};
}

static struct row_entries made_buckets(const struct row_history *h)
{
    return (struct row_entries){h->buckets.items, h->buckets.len};
}

static const struct made_table {
    size_t (*count)(const struct row_history *h);
    enum err (*collect)(struct row_history *h, uint32_t row); // all entries of the row
    struct row_entries (*made)(const struct row_history *h);  // where they are afterwards
} made_tables[REC_TABLE_COUNT] = {
    [REC_TABLE_CELLS] = {count_cells, collect_cells, made_cells},
    [REC_TABLE_SIZE_BUCKETS] = {count_sizes, collect_sizes, made_buckets},
    [REC_TABLE_LIFETIME_BUCKETS] = {count_lifetimes, collect_lifetimes, made_buckets},
};

static void begin_supplied(void *context, enum rec_table_index table)
{
    struct row_history *h = context;
    (void)table; // one at a time
    h->next_row = 0;
    h->taken = 0;
    h->run_first = 0;
    h->run_end = 0;
    rec_cell_vec_clear(&h->cells);
    rec_bucket_vec_clear(&h->buckets);
}

enum err row_history_begin(struct row_history *history, struct row_table *table)
{
    history->table = table;
    TRY(make_cohorts(history));
    for (size_t i = 0; i < REC_TABLE_COUNT; i++) {
        if (made_tables[i].count != NULL) {
            history->counts[i] = made_tables[i].count(history);
        }
    }
    return ERR_OK;
}

void row_history_release(struct row_history *history)
{
    rec_cell_vec_release(&history->listed);
    rec_cell_vec_release(&history->cells);
    rec_bucket_vec_release(&history->buckets);
    rec_cohort_vec_release(&history->cohorts);
}

static size_t count_supplied(void *context, enum rec_table_index table)
{
    const struct row_history *h = context;
    return h->counts[table];
}

static enum err supply_next(void *context, enum rec_table_index table, void *entries, size_t count)
{
    struct row_history *h = context;
    const size_t entry_bytes = rec_tables[table].entry_bytes;
    char *out = entries;
    while (count > 0) {
        const struct row_entries made = made_tables[table].made(h);
        size_t now = made.count - h->taken;
        now = min_u64(now, count);
        if (now == 0) {
            TRY(made_tables[table].collect(h, h->next_row++));
            h->taken = 0;
            continue;
        }
        memcpy(out, (const char *)made.items + h->taken * entry_bytes, now * entry_bytes);
        h->taken += now;
        out += now * entry_bytes;
        count -= now;
    }
    return ERR_OK;
}

struct table_supply row_history_supply(struct row_history *history)
{
    return (struct table_supply){
        .context = history, .count = count_supplied, .begin = begin_supplied, .next = supply_next};
}
