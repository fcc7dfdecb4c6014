// SPDX-License-Identifier: MIT
// row_table: what each stack did on each thread.
//
// Who owns the global peak, without looking at all rows whenever it moves: each new maximum has a
// number. A row remembers the number that was current when it last changed. If the number has moved
// since, a maximum was set while the row stood still, so its live bytes are what it held at the
// latest one: it writes them down (row_fold) just before it changes again, or when it is asked.
//
// Rows lie in memory as the recording wants them; beside each, `row_extra` holds what only we need:
// 112 bytes a row together, and 6 to 11 to find it. Cells and cohorts come on top; when there are
// too many of them, they become coarser than the recording's time slices, by powers of two.
// Invariants: rows are unique by (thread, node); frees <= allocations, freed <= allocated bytes.
// Context: H, one thread. Failure: ERR_NO_MEMORY, ERR_LIMIT (2^32 rows).
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "host/vec.h"
#include "recorder/bucket_set.h"
#include "recorder/cell_table.h"
#include "recorder/cohort_table.h"
#include "recorder/id_index.h"
#include "recording/tables.h"

struct row_extra {
    uint64_t peak_number; // current when the row last changed
    struct bucket_set sizes;
    struct bucket_set lifetimes; // in milliseconds, of what was freed
    struct row_cells cells;
};
_Static_assert(sizeof(struct row_extra) == 32, "one for each of perhaps millions of rows");

DEFINE_VEC(rec_row_vec, struct rec_row);
DEFINE_VEC(row_extra_vec, struct row_extra);

struct row_table {
    struct rec_row_vec rows;
    struct row_extra_vec extras; // parallel to rows
    struct id_index index;
    struct cell_table cells;
    struct cohort_table cohorts;
    uint64_t peak_number;  // how often the recording has set a new maximum; its user counts
    uint32_t slice;        // the time slice under way
    uint32_t cell_shift;   // a cell stands for 1 << cell_shift slices
    uint32_t cohort_shift; // a step of a cohort for 1 << cohort_shift; at least cell_shift
    size_t cells_max;      // that any recording may have; an eighth as many as rows come on top
    size_t cohorts_max;    // the same
};

void row_table_release(struct row_table *table);

// The row of (thread, node), added if it is new.
enum err row_table_get(struct row_table *table, uint32_t thread, uint32_t node, uint32_t *out_row)
    MUST_USE;

// Before a change: what the row holds now is what it held at the latest peak, if there was one
// since its last change.
static inline void row_fold(struct rec_row *row, struct row_extra *extra, uint64_t peak_number)
{
    if (extra->peak_number != peak_number) {
        row->peak_bytes = row->allocated_bytes - row->freed_bytes;
        row->peak_blocks = row->allocations - row->frees;
        extra->peak_number = peak_number;
    }
}

// The slice of the cells that are under way.
static inline uint32_t row_table_step(const struct row_table *table)
{
    return table->slice >> table->cell_shift;
}

// The row allocated a block. Inline, as the next ones: they are on the path of each event.
static inline MUST_USE enum err
row_table_allocated(struct row_table *table, uint32_t row, uint64_t size_bytes)
{
    struct rec_row *r = table->rows.items + row;
    struct row_extra *extra = table->extras.items + row;
    struct cell *cell = NULL;
    TRY(cell_table_touch(&table->cells, &extra->cells, r, row_table_step(table), &cell));
    TRY(bucket_set_add(&extra->sizes, rec_bucket_of(size_bytes), size_bytes, r->allocations,
                       r->allocated_bytes));
    row_fold(r, extra, table->peak_number);
    r->allocations++;
    r->allocated_bytes += size_bytes;
    const uint64_t live_bytes = r->allocated_bytes - r->freed_bytes;
    if (live_bytes > r->own_peak_bytes) {
        r->own_peak_bytes = live_bytes;
    }
    if (cell != NULL) {
        cell->allocations++;
        cell->allocated_bytes += size_bytes;
    }
    return ERR_OK;
}

// A block of the row, born in born_slice, was freed after lifetime_ms.
static inline MUST_USE enum err row_table_freed(struct row_table *table,
                                                uint32_t row,
                                                uint64_t size_bytes,
                                                uint64_t lifetime_ms,
                                                uint32_t born_slice)
{
    struct rec_row *r = table->rows.items + row;
    struct row_extra *extra = table->extras.items + row;
    struct cell *cell = NULL;
    TRY(cell_table_touch(&table->cells, &extra->cells, r, row_table_step(table), &cell));
    TRY(bucket_set_add(&extra->lifetimes, rec_bucket_of(lifetime_ms), size_bytes, r->frees,
                       r->freed_bytes));
    const uint32_t born_step = born_slice >> table->cohort_shift;
    const uint32_t freed_step = table->slice >> table->cohort_shift;
    if (born_step < freed_step) {
        TRY(cohort_table_add(&table->cohorts, row, born_step, freed_step, size_bytes));
    }
    row_fold(r, extra, table->peak_number);
    r->frees++;
    r->freed_bytes += size_bytes;
    if (cell != NULL) {
        cell->frees++;
        cell->freed_bytes += size_bytes;
    }
    return ERR_OK;
}

// The row allocated `count` blocks of size_bytes each and freed them at once; `temporary` of them
// were so. What it held in between is not known, but for the size of one.
static inline MUST_USE enum err row_table_paired(
    struct row_table *table, uint32_t row, uint64_t size_bytes, uint32_t count, uint32_t temporary)
{
    struct rec_row *r = table->rows.items + row;
    struct row_extra *extra = table->extras.items + row;
    struct cell *cell = NULL;
    const uint64_t bytes = count * size_bytes;
    const uint32_t size_bucket = rec_bucket_of(size_bytes);
    const uint32_t at_once = rec_bucket_of(0);
    TRY(cell_table_touch(&table->cells, &extra->cells, r, row_table_step(table), &cell));
    TRY(bucket_set_add(&extra->sizes, size_bucket, size_bytes, r->allocations, r->allocated_bytes));
    TRY(bucket_set_add(&extra->lifetimes, at_once, size_bytes, r->frees, r->freed_bytes));
    bucket_set_add_more(&extra->sizes, size_bucket, count - 1, bytes - size_bytes);
    bucket_set_add_more(&extra->lifetimes, at_once, count - 1, bytes - size_bytes);
    row_fold(r, extra, table->peak_number);
    r->allocations += count;
    r->allocated_bytes += bytes;
    r->frees += count;
    r->freed_bytes += bytes;
    r->temporary += temporary;
    r->temporary_bytes += temporary * size_bytes;
    r->own_peak_bytes = r->own_peak_bytes > size_bytes ? r->own_peak_bytes : size_bytes;
    if (cell != NULL) {
        cell->allocations += count;
        cell->allocated_bytes += bytes;
        cell->frees += count;
        cell->freed_bytes += bytes;
        cell->temporary += temporary;
    }
    return ERR_OK;
}

// An allocation of the row turned out to be temporary.
static inline MUST_USE enum err
row_table_was_temporary(struct row_table *table, uint32_t row, uint64_t size_bytes)
{
    struct rec_row *r = table->rows.items + row;
    struct cell *cell = NULL;
    TRY(cell_table_touch(&table->cells, &table->extras.items[row].cells, r, row_table_step(table),
                         &cell));
    r->temporary++;
    r->temporary_bytes += size_bytes;
    if (cell != NULL) {
        cell->temporary++;
    }
    return ERR_OK;
}

// Time comes to `slice`, after slices have merged `shift` times: s became s >> shift. Makes cells
// and cohorts coarser if there are too many. ERR_NO_MEMORY.
enum err row_table_advance(struct row_table *table, uint32_t slice, uint32_t shift) MUST_USE;

// Brings the peak columns of `row` up to date. `is_alive` is false if its process has ended;
// `end_number` is the peak's number at that time. (The dead hold nothing at later peaks.)
void row_table_fold(struct row_table *table, uint32_t row, bool is_alive, uint64_t end_number);
