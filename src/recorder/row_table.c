// SPDX-License-Identifier: MIT
// row_table: see the header.
#include "recorder/row_table.h"

#include "base/hash.h"

void row_table_release(struct row_table *table)
{
    for (size_t i = 0; i < table->extras.len; i++) {
        bucket_set_release(&table->extras.items[i].sizes);
        bucket_set_release(&table->extras.items[i].lifetimes);
    }
    rec_row_vec_release(&table->rows);
    row_extra_vec_release(&table->extras);
    id_index_release(&table->index);
    cell_table_release(&table->cells);
    cohort_table_release(&table->cohorts);
}

static uint64_t row_hash(const void *rows, uint32_t id)
{
    const struct rec_row *row = (const struct rec_row *)rows + id;
    return hash_mix((uint64_t)row->thread << 32 | row->node);
}

enum err row_table_get(struct row_table *table, uint32_t thread, uint32_t node, uint32_t *out_row)
{
    struct rec_row wanted = {.thread = thread, .node = node};
    struct id_index *index = &table->index;
    uint64_t hash = row_hash(&wanted, 0);
    uint32_t id;
    for (size_t at = id_index_start(index, hash); (id = id_index_at(index, at)) != ID_NONE;
         at = id_index_next(index, at)) {
        const struct rec_row *row = table->rows.items + id;
        if (row->thread == thread && row->node == node) {
            *out_row = id;
            return ERR_OK;
        }
    }
    if (table->rows.len >= REC_NONE) {
        return ERR_LIMIT;
    }
    id = (uint32_t)table->rows.len;
    TRY(rec_row_vec_reserve(&table->rows, 1));
    TRY(row_extra_vec_reserve(&table->extras, 1));
    TRY(id_index_add(index, hash, id, row_hash, table->rows.items));
    table->rows.items[table->rows.len++] = wanted;
    table->extras.items[table->extras.len++] = (struct row_extra){.cells.latest = CELL_NONE};
    *out_row = id;
    return ERR_OK;
}

static void merge_cells(struct row_table *table, uint32_t shift)
{
    for (size_t i = 0; i < table->rows.len; i++) {
        cell_table_merge_row(&table->cells, &table->extras.items[i].cells, shift);
    }
}

// What was coarser than slices needs not merge with them; it only is less so.
static enum err slices_merged(struct row_table *table, uint32_t shift)
{
    const uint32_t of_cells = table->cell_shift < shift ? table->cell_shift : shift;
    const uint32_t of_cohorts = table->cohort_shift < shift ? table->cohort_shift : shift;
    table->cell_shift -= of_cells;
    table->cohort_shift -= of_cohorts;
    if (of_cohorts < shift) {
        TRY(cohort_table_merge_slices(&table->cohorts, shift - of_cohorts));
    }
    if (of_cells < shift) {
        merge_cells(table, shift - of_cells);
    }
    return ERR_OK;
}

static bool is_too_many(const struct row_table *table, size_t count, size_t max)
{
    return count > max + table->rows.len / 8;
}

static enum err coarsen_cohorts(struct row_table *table)
{
    table->cohort_shift++;
    return cohort_table_merge_slices(&table->cohorts, 1);
}

enum err row_table_advance(struct row_table *table, uint32_t slice, uint32_t shift)
{
    if (shift > 0) {
        TRY(slices_merged(table, shift));
    }
    table->slice = slice;
    while (is_too_many(table, table->cohorts.cohorts.len, table->cohorts_max) &&
           slice >> table->cohort_shift > 0) {
        TRY(coarsen_cohorts(table));
    }
    while (is_too_many(table, cell_table_count(&table->cells), table->cells_max) &&
           row_table_step(table) > 0) {
        if (table->cohort_shift == table->cell_shift) {
            TRY(coarsen_cohorts(table));
        }
        table->cell_shift++;
        merge_cells(table, 1);
    }
    return ERR_OK;
}

void row_table_fold(struct row_table *table, uint32_t row, bool is_alive, uint64_t end_number)
{
    struct rec_row *r = table->rows.items + row;
    struct row_extra *extra = table->extras.items + row;
    if (extra->peak_number == table->peak_number) {
        return;
    }
    if (is_alive || end_number == table->peak_number) {
        row_fold(r, extra, table->peak_number);
        return;
    }
    r->peak_bytes = 0;
    r->peak_blocks = 0;
    extra->peak_number = table->peak_number;
}
