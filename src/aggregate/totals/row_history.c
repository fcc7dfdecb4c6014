// SPDX-License-Identifier: MIT
#include "aggregate/totals/row_history.h"

#include <string.h>

#include "base/compiler.h"
#include "base/minmax.h"

// The live blocks of one row by step of birth. A step is 1 << cohort_shift slices. Outside of
// [first, end) everything is zero.
struct survivors {
    uint32_t first;
    uint32_t end;
    int64_t blocks[SERIES_SLICES_MAX];
    int64_t bytes[SERIES_SLICES_MAX];
};

static void clear_survivors(struct survivors *alive)
{
    for (uint32_t i = alive->first; i < alive->end; i++) {
        alive->blocks[i] = 0;
        alive->bytes[i] = 0;
    }
    alive->first = SERIES_SLICES_MAX;
    alive->end = 0;
}

static void add_survivors(struct survivors *alive, uint32_t step, int64_t blocks, int64_t bytes)
{
    alive->blocks[step] += blocks;
    alive->bytes[step] += bytes;
    alive->first = min_u64(alive->first, step);
    alive->end = step < alive->end ? alive->end : step + 1;
}

// One row's part in the making of all cohorts.
struct row_part {
    uint32_t row;
    uint32_t shift; // of cohorts
    const struct rec_cell *cells;
    size_t cell_count;
    const struct rec_cohort *freed; // sorted
    size_t freed_count;
};

static void find_survivors(const struct row_part *part, struct survivors *alive)
{
    clear_survivors(alive);
    for (size_t i = 0; i < part->cell_count; i++) {
        const struct rec_cell *cell = part->cells + i;
        add_survivors(alive, cell->slice >> part->shift, (int64_t)(cell->allocations - cell->frees),
                      (int64_t)(cell->allocated_bytes - cell->freed_bytes));
    }
    for (size_t i = 0; i < part->freed_count; i++) {
        const struct rec_cohort *cohort = part->freed + i;
        add_survivors(alive, cohort->freed_slice, cohort->blocks, (int64_t)cohort->bytes);
        add_survivors(alive, cohort->born_slice, -(int64_t)cohort->blocks, -(int64_t)cohort->bytes);
    }
    // A record that was read late was counted in a later slice than its birth.
    for (uint32_t i = alive->first; i + 1 < alive->end; i++) {
        if (alive->blocks[i] < 0 || alive->bytes[i] < 0) {
            alive->blocks[i + 1] += alive->blocks[i];
            alive->bytes[i + 1] += alive->bytes[i];
            alive->blocks[i] = 0;
            alive->bytes[i] = 0;
        }
    }
}

static enum err push_alive(const struct row_part *part,
                           const struct survivors *alive,
                           uint32_t born,
                           struct rec_cohort_vec *out)
{
    const int64_t blocks = alive->blocks[born];
    if (blocks <= 0) {
        return ERR_OK;
    }
    return rec_cohort_vec_push(
        out, (struct rec_cohort){.row = part->row,
                                 .born_slice = born << part->shift,
                                 .freed_slice = REC_NONE, // sorts behind all slices
                                 .blocks = blocks < UINT32_MAX ? (uint32_t)blocks : UINT32_MAX,
                                 .bytes = (uint64_t)alive->bytes[born]});
}

static enum err
push_cohorts(const struct row_part *part, const struct survivors *alive, struct rec_cohort_vec *out)
{
    size_t at = 0;
    for (uint32_t born = alive->first; born < alive->end; born++) {
        for (; at < part->freed_count && part->freed[at].born_slice == born; at++) {
            struct rec_cohort cohort = part->freed[at];
            cohort.born_slice <<= part->shift;
            cohort.freed_slice <<= part->shift;
            TRY(rec_cohort_vec_push(out, cohort));
        }
        TRY(push_alive(part, alive, born, out));
    }
    return ERR_OK;
}

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

static enum err make_cohorts(struct row_history *h)
{
    CLEANUP(rec_cohort_vec_release) struct rec_cohort_vec freed = {0};
    const struct row_table *table = h->table;
    struct survivors alive = {0};
    size_t at = 0;
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
            find_survivors(&part, &alive);
            TRY(push_cohorts(&part, &alive, &h->cohorts));
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
