// SPDX-License-Identifier: MIT
// cell_table: what each row did in each time slice.
//
// A row that was active in one slice only has no cells: the row's own sums are the cell of that
// slice. The second slice makes a list in a pool that all rows share, the latest cell first. A cell
// holds the row's sums at the start of its slice, so later events of a slice cost nothing here. The
// events of a slice are the difference to the next cell, or to the row. When slices merge, all
// cells of a slice but the earliest become free, and are reused first.
//
//   row (sum 90) --latest--> slice 7 --older--> slice 4 --older--> slice 1
//                            from 60            from 20            from 0
//                            (did 30)           (did 40)           (did 20)
//
// Merging reads the slices alone, so they are apart from the sums.
// Memory: 48 bytes a cell, for rows of more than one slice.
// Invariant: a row's oldest cell starts at 0.
// Context: H, one thread.
// Failure: ERR_NO_MEMORY leaves the table usable, without the event.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "recording/format/tables.h"

#define CELL_NONE UINT32_MAX

struct cell {
    uint32_t slice;
    uint32_t older; // the row's cell before this, or CELL_NONE
};

// The row's sums when a cell began.
struct cell_start {
    uint64_t allocations;
    uint64_t allocated_bytes;
    uint64_t frees;
    uint64_t freed_bytes;
    uint64_t temporary;
};

DEFINE_VEC(cell_vec, struct cell);
DEFINE_VEC(cell_start_vec, struct cell_start);
DEFINE_VEC(rec_cell_vec, struct rec_cell);

// The part of the table in each row.
struct row_cells {
    uint32_t latest; // CELL_NONE: all events so far were in `slice`
    uint32_t slice;  // of the row's latest event
};

// Zeroed is empty and valid.
struct cell_table {
    struct cell_vec pool;
    struct cell_start_vec starts; // parallel to pool
    uint32_t free_first;          // first of free_count free cells, linked by `older`
    size_t free_count;
};

// Return the number of cells in use.
static inline size_t cell_table_count(const struct cell_table *table)
{
    return table->pool.len - table->free_count;
}

void cell_table_release(struct cell_table *table);

// Return the memory in use.
static inline size_t cell_table_bytes(const struct cell_table *table)
{
    return table->pool.cap * sizeof(struct cell) + table->starts.cap * sizeof(struct cell_start);
}

// The slow path of cell_table_touch: a row's first event in a slice.
enum err cell_table_begin(struct cell_table *table,
                          struct row_cells *cells,
                          const struct rec_row *row,
                          uint32_t slice) MUST_USE;

// Prepare `row` for an event in `slice`, which is not before its latest one. Inline: each event
// calls it.
static inline MUST_USE enum err cell_table_touch(struct cell_table *table,
                                                 struct row_cells *cells,
                                                 const struct rec_row *row,
                                                 uint32_t slice)
{
    return LIKELY(cells->slice == slice) ? ERR_OK : cell_table_begin(table, cells, row, slice);
}

// Merge the slices of the row with these cells: slice s becomes s >> shift. Allocates nothing.
void cell_table_merge_row(struct cell_table *table, struct row_cells *cells, uint32_t shift);

// Move the cells `from` of a row to those of the row `into`, to which it is about to be added. The
// sums of both rows are still apart.
enum err cell_table_join(struct cell_table *table,
                         struct row_cells *into,
                         const struct rec_row *into_row,
                         struct row_cells *from,
                         const struct rec_row *from_row) MUST_USE;

// Append the cells of row number `index` to `out`, by ascending slice. Slice s of the table is
// slice s << shift of `out`.
enum err cell_table_collect(const struct cell_table *table,
                            const struct row_cells *cells,
                            const struct rec_row *row,
                            uint32_t index,
                            uint32_t shift,
                            struct rec_cell_vec *out) MUST_USE;
