// SPDX-License-Identifier: MIT
#include "aggregate/rows/cell_table.h"

#include "base/minmax.h"

void cell_table_release(struct cell_table *table)
{
    cell_vec_release(&table->pool);
    cell_start_vec_release(&table->starts);
}

// Push a cell. make_room has made room.
static void push_cell(struct cell_table *table,
                      struct row_cells *cells,
                      uint32_t slice,
                      struct cell_start start)
{
    uint32_t number = (uint32_t)table->pool.len;
    if (table->free_count > 0) {
        number = table->free_first;
        table->free_first = table->pool.items[number].older;
        table->free_count--;
    } else {
        table->pool.len++;
        table->starts.len++;
    }
    table->pool.items[number] = (struct cell){.slice = slice, .older = cells->latest};
    table->starts.items[number] = start;
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
    if (table->pool.len + count >= CELL_NONE) {
        return ERR_LIMIT;
    }
    TRY(cell_start_vec_reserve(&table->starts, count));
    return cell_vec_reserve(&table->pool, count);
}

static struct cell_start sums_of(const struct rec_row *row)
{
    return (struct cell_start){.allocations = row->allocations,
                               .allocated_bytes = row->allocated_bytes,
                               .frees = row->frees,
                               .freed_bytes = row->freed_bytes,
                               .temporary = row->temporary};
}

enum err cell_table_begin(struct cell_table *table,
                          struct row_cells *cells,
                          const struct rec_row *row,
                          uint32_t slice)
{
    if (row->allocations == 0) {
        cells->slice = slice;
        return ERR_OK;
    }
    TRY(make_room(table, 2));
    if (cells->latest == CELL_NONE) {
        push_cell(table, cells, cells->slice, (struct cell_start){0});
    }
    push_cell(table, cells, slice, sums_of(row));
    cells->slice = slice;
    return ERR_OK;
}

void cell_table_merge_row(struct cell_table *table, struct row_cells *cells, uint32_t shift)
{
    struct cell *pool = table->pool.items;
    cells->slice >>= shift;
    for (uint32_t *link = &cells->latest; *link != CELL_NONE; link = &pool[*link].older) {
        const uint32_t slice = pool[*link].slice >> shift;
        for (uint32_t older = pool[*link].older;
             older != CELL_NONE && pool[older].slice >> shift == slice; older = pool[*link].older) {
            give_back(table, *link); // the older one began earlier
            *link = older;
        }
        pool[*link].slice = slice;
    }
    if (cells->latest != CELL_NONE && pool[cells->latest].older == CELL_NONE) {
        give_back(table, cells->latest); // the row has the same
        cells->latest = CELL_NONE;
    }
}

static struct cell_start sum_of_starts(const struct cell_start *a, const struct cell_start *b)
{
    return (struct cell_start){.allocations = a->allocations + b->allocations,
                               .allocated_bytes = a->allocated_bytes + b->allocated_bytes,
                               .frees = a->frees + b->frees,
                               .freed_bytes = a->freed_bytes + b->freed_bytes,
                               .temporary = a->temporary + b->temporary};
}

// Merge two lists, the latest cells first. Where only one row has a cell, the other one's sums at
// the start of that slice are those at its next later cell.
static void join_lists(struct cell_table *table,
                       struct row_cells *into,
                       const struct rec_row *into_row,
                       uint32_t b,
                       const struct rec_row *from_row)
{
    struct cell *pool = table->pool.items;
    struct cell_start *starts = table->starts.items;
    struct cell_start sum_a = sums_of(into_row);
    struct cell_start sum_b = sums_of(from_row);
    uint32_t *link = &into->latest;
    for (uint32_t a = into->latest; a != CELL_NONE || b != CELL_NONE;) {
        const bool has_a = a != CELL_NONE && (b == CELL_NONE || pool[a].slice >= pool[b].slice);
        const bool has_b = b != CELL_NONE && (!has_a || pool[a].slice == pool[b].slice);
        const uint32_t place = has_a ? a : b;
        const uint32_t spare = has_a && has_b ? b : CELL_NONE;
        sum_a = has_a ? starts[a] : sum_a;
        sum_b = has_b ? starts[b] : sum_b;
        a = has_a ? pool[a].older : a;
        b = has_b ? pool[b].older : b;
        starts[place] = sum_of_starts(&sum_a, &sum_b);
        *link = place;
        link = &pool[place].older;
        if (spare != CELL_NONE) {
            give_back(table, spare);
        }
    }
    *link = CELL_NONE;
}

enum err cell_table_join(struct cell_table *table,
                         struct row_cells *into,
                         const struct rec_row *into_row,
                         struct row_cells *from,
                         const struct rec_row *from_row)
{
    if (from_row->allocations == 0) {
        return ERR_OK;
    }
    if (into_row->allocations == 0) {
        *into = *from;
        return ERR_OK;
    }
    TRY(make_room(table, 2));
    if (into->latest == CELL_NONE) {
        push_cell(table, into, into->slice, (struct cell_start){0});
    }
    if (from->latest == CELL_NONE) {
        push_cell(table, from, from->slice, (struct cell_start){0});
    }
    into->slice = max_u64(into->slice, from->slice);
    join_lists(table, into, into_row, from->latest, from_row);
    from->latest = CELL_NONE;
    if (table->pool.items[into->latest].older == CELL_NONE) {
        give_back(table, into->latest); // the row has the same
        into->latest = CELL_NONE;
    }
    return ERR_OK;
}

// Return the events between one cell's start and the next.
static struct rec_cell
difference(uint32_t row, uint32_t slice, const struct cell_start *from, const struct cell_start *to)
{
    return (struct rec_cell){.row = row,
                             .slice = slice,
                             .allocations = to->allocations - from->allocations,
                             .allocated_bytes = to->allocated_bytes - from->allocated_bytes,
                             .frees = to->frees - from->frees,
                             .freed_bytes = to->freed_bytes - from->freed_bytes,
                             .temporary = to->temporary - from->temporary};
}

enum err cell_table_collect(const struct cell_table *table,
                            const struct row_cells *cells,
                            const struct rec_row *row,
                            uint32_t index,
                            uint32_t shift,
                            struct rec_cell_vec *out)
{
    static const struct cell_start none;
    struct cell_start end = sums_of(row);
    if (row->allocations == 0) {
        return ERR_OK;
    }
    if (cells->latest == CELL_NONE) {
        return rec_cell_vec_push(out, difference(index, cells->slice << shift, &none, &end));
    }
    const size_t begin = out->len;
    for (uint32_t i = cells->latest; i != CELL_NONE; i = table->pool.items[i].older) {
        const struct cell_start *start = table->starts.items + i;
        const uint32_t slice = table->pool.items[i].slice << shift;
        TRY(rec_cell_vec_push(out, difference(index, slice, start, &end)));
        end = *start;
    }
    for (size_t low = begin, high = out->len - 1; low < high; low++, high--) {
        const struct rec_cell kept = out->items[low];
        out->items[low] = out->items[high];
        out->items[high] = kept;
    }
    return ERR_OK;
}
