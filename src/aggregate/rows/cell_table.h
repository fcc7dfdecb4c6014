// SPDX-License-Identifier: MIT
// cell_table: what each row did in each time slice.
//
// A row that was active in one slice only has no cells: that slice is noted beside the row, and the
// row's own sums are its one cell. The second slice makes it a list in a pool that all rows share,
// the latest first. A cell is what the row's sums were when its slice began, so that events after
// the first in a slice cost nothing here; what happened in it is the difference to the next cell,
// or to the row. When slices merge, cells of one slice are left over but for the earliest, and are
// the next to be used.
//
//   row (sum 90) --latest--> slice 7 --older--> slice 4 --older--> slice 1
//                            from 60            from 20            from 0
//                            (did 30)           (did 40)           (did 20)
//
// Merging looks at slices alone, so they lie apart from the sums.
// Memory: 48 bytes a cell, for rows of more than one slice. Invariant: a row's oldest cell is from
// 0. Context: H, one thread. Failure: ERR_NO_MEMORY leaves the table usable, without the event.
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

// A row's sums when a cell began.
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

// What a row keeps.
struct row_cells {
    uint32_t latest; // CELL_NONE: everything so far was in `slice`
    uint32_t slice;  // of the row's latest event
};

// Zeroed is empty and valid.
struct cell_table {
    struct cell_vec pool;
    struct cell_start_vec starts; // parallel to pool
    uint32_t free_first;          // the first of free_count left-over cells, linked by `older`
    size_t free_count;
};

// Cells in use.
static inline size_t cell_table_count(const struct cell_table *table)
{
    return table->pool.len - table->free_count;
}

void cell_table_release(struct cell_table *table);

// Memory in use.
static inline size_t cell_table_bytes(const struct cell_table *table)
{
    return table->pool.cap * sizeof(struct cell) + table->starts.cap * sizeof(struct cell_start);
}

// The rest of cell_table_touch: a row's first event in a slice.
enum err cell_table_begin(struct cell_table *table,
                          struct row_cells *cells,
                          const struct rec_row *row,
                          uint32_t slice) MUST_USE;

// Something is about to be added to `row` in `slice`, which is not before its latest one. Inline:
// it is on the path of each event.
static inline MUST_USE enum err cell_table_touch(struct cell_table *table,
                                                 struct row_cells *cells,
                                                 const struct rec_row *row,
                                                 uint32_t slice)
{
    return LIKELY(cells->slice == slice && row->allocations > 0)
               ? ERR_OK
               : cell_table_begin(table, cells, row, slice);
}

// Slices merge: slice s of a row, whose cells these are, becomes s >> shift. Takes no memory.
void cell_table_merge_row(struct cell_table *table, struct row_cells *cells, uint32_t shift);

// The cells of `count` rows, whose latest ones these are, are to be collected soon. A list is gone
// through much faster together with others, since each step waits for memory. `latest` is used up.
void cell_table_fetch(const struct cell_table *table, uint32_t *latest, size_t count);

// Appends the cells of row number `index` to `out`, by ascending slice; slice s of ours is slice
// s << shift of theirs.
enum err cell_table_collect(const struct cell_table *table,
                            const struct row_cells *cells,
                            const struct rec_row *row,
                            uint32_t index,
                            uint32_t shift,
                            struct rec_cell_vec *out) MUST_USE;
