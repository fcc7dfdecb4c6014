// SPDX-License-Identifier: MIT
// cell_table: see the header.
#include "recorder/cell_table.h"

void cell_table_release(struct cell_table *table)
{
    cell_vec_release(&table->pool);
}

// There is room: make_room was asked.
static void push(struct cell_table *table, struct row_cells *cells, struct cell cell)
{
    uint32_t number = (uint32_t)table->pool.len;
    if (table->free_count > 0) {
        number = table->free_first;
        table->free_first = table->pool.items[number].older;
        table->free_count--;
    } else {
        table->pool.len++;
    }
    cell.older = cells->latest;
    table->pool.items[number] = cell;
    cells->latest = number;
}

static void give_back(struct cell_table *table, uint32_t number)
{
    table->pool.items[number].older = table->free_first;
    table->free_first = number;
    table->free_count++;
}

static enum err make_room(struct cell_table *table, size_t count)
{
    if (table->free_count >= count) {
        return ERR_OK;
    }
    return table->pool.len + count < CELL_NONE ? cell_vec_reserve(&table->pool, count) : ERR_LIMIT;
}

// The only cell of a row that has none in the pool.
static struct cell only_cell(const struct row_cells *cells, const struct rec_row *row)
{
    return (struct cell){.allocations = row->allocations,
                         .allocated_bytes = row->allocated_bytes,
                         .frees = row->frees,
                         .freed_bytes = row->freed_bytes,
                         .temporary = row->temporary,
                         .slice = cells->slice,
                         .older = CELL_NONE};
}

enum err cell_table_begin(struct cell_table *table,
                          struct row_cells *cells,
                          const struct rec_row *row,
                          uint32_t slice,
                          struct cell **out)
{
    if (row->allocations == 0) {
        cells->slice = slice;
        *out = NULL;
        return ERR_OK;
    }
    TRY(make_room(table, 2));
    if (cells->latest == CELL_NONE) {
        push(table, cells, only_cell(cells, row));
    }
    push(table, cells, (struct cell){.slice = slice});
    cells->slice = slice;
    *out = table->pool.items + cells->latest;
    return ERR_OK;
}

static void merge(struct cell *into, const struct cell *other)
{
    into->allocations += other->allocations;
    into->allocated_bytes += other->allocated_bytes;
    into->frees += other->frees;
    into->freed_bytes += other->freed_bytes;
    into->temporary += other->temporary;
}

void cell_table_merge_row(struct cell_table *table, struct row_cells *cells, uint32_t shift)
{
    cells->slice >>= shift;
    if (cells->latest == CELL_NONE) {
        return;
    }
    struct cell *kept = table->pool.items + cells->latest;
    kept->slice >>= shift;
    while (kept->older != CELL_NONE) {
        const uint32_t number = kept->older;
        struct cell *cell = table->pool.items + number;
        cell->slice >>= shift;
        if (cell->slice == kept->slice) {
            merge(kept, cell);
            kept->older = cell->older;
            give_back(table, number);
        } else {
            kept = cell;
        }
    }
    if (table->pool.items[cells->latest].older == CELL_NONE) { // the row says the same
        give_back(table, cells->latest);
        cells->latest = CELL_NONE;
    }
}

static struct rec_cell rec_cell_of(const struct cell *cell, uint32_t row, uint32_t shift)
{
    return (struct rec_cell){.row = row,
                             .slice = cell->slice << shift,
                             .allocations = cell->allocations,
                             .allocated_bytes = cell->allocated_bytes,
                             .frees = cell->frees,
                             .freed_bytes = cell->freed_bytes,
                             .temporary = cell->temporary};
}

enum err cell_table_collect(const struct cell_table *table,
                            const struct row_cells *cells,
                            const struct rec_row *row,
                            uint32_t index,
                            uint32_t shift,
                            struct rec_cell_vec *out)
{
    if (row->allocations == 0) {
        return ERR_OK;
    }
    if (cells->latest == CELL_NONE) {
        const struct cell only = only_cell(cells, row);
        return rec_cell_vec_push(out, rec_cell_of(&only, index, shift));
    }
    const size_t begin = out->len;
    for (uint32_t i = cells->latest; i != CELL_NONE; i = table->pool.items[i].older) {
        TRY(rec_cell_vec_push(out, rec_cell_of(table->pool.items + i, index, shift)));
    }
    for (size_t low = begin, high = out->len - 1; low < high; low++, high--) {
        const struct rec_cell kept = out->items[low];
        out->items[low] = out->items[high];
        out->items[high] = kept;
    }
    return ERR_OK;
}
