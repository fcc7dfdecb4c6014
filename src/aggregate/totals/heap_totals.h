// SPDX-License-Identifier: MIT
// heap_totals: the rows, sums, time slices and peak of one heap, from events in their order.
//
// For logs of events that are read one after the other. The caller knows which block an event is
// about: its row, its size and when it was born. The recorder adds processes, threads, live blocks
// and sampling to the same tables (book.h).
//
//   heap_totals_init ... heap_totals_advance, heap_totals_allocated, heap_totals_freed ...
//   heap_totals_finish; then rows, series_collect and row_history have what a recording needs
//
// The history of rows never becomes coarser than the time slices, so memory is bounded by rows
// times slices; heap_totals_bytes tells how much it is. Context: H, one thread. Failure:
// ERR_NO_MEMORY, ERR_LIMIT (2^32 rows).
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "aggregate/rows/row_table.h"
#include "aggregate/totals/series.h"
#include "base/err.h"

struct heap_totals {
    struct row_table rows;
    struct running_sums sums;
    struct series series;
    uint64_t now_ms;
    uint64_t peak_bytes;
    uint64_t peak_time_ms;
};

void heap_totals_init(struct heap_totals *totals);
void heap_totals_release(struct heap_totals *totals);

// Memory in use beside the structure. Looks at every row.
size_t heap_totals_bytes(const struct heap_totals *totals);

// Time comes to now_ms. An earlier time changes nothing.
enum err heap_totals_advance(struct heap_totals *totals, uint64_t now_ms) MUST_USE;

// All events have been counted: completes the rows and their peaks.
enum err heap_totals_finish(struct heap_totals *totals) MUST_USE;

static inline uint32_t heap_totals_slice_of(const struct heap_totals *totals, uint64_t time_ms)
{
    return (uint32_t)(time_ms >> totals->series.slice_shift);
}

// A row of row_table_get allocated a block. Inline, as heap_totals_freed: both are called for each
// event.
static inline MUST_USE enum err
heap_totals_allocated(struct heap_totals *totals, uint32_t row, uint64_t size_bytes)
{
    struct running_sums *sums = &totals->sums;
    TRY(row_table_allocated(&totals->rows, row, size_bytes));
    sums->allocations++;
    sums->allocated_bytes += size_bytes;
    sums->live_bytes += size_bytes;
    if (sums->live_bytes > sums->slice_max_bytes) {
        sums->slice_max_bytes = sums->live_bytes;
        if (sums->live_bytes > totals->peak_bytes) {
            totals->peak_bytes = sums->live_bytes;
            totals->peak_time_ms = totals->now_ms;
            totals->rows.peak_number++;
        }
    }
    return ERR_OK;
}

// A block that was freed.
struct heap_free {
    uint64_t size_bytes;
    uint64_t born_ms; // at most now_ms
    uint32_t row;
    uint32_t lifetime; // its bucket, or BUCKET_UNKNOWN
    bool is_temporary;
};

static inline MUST_USE enum err heap_totals_freed(struct heap_totals *totals,
                                                  const struct heap_free *block)
{
    struct running_sums *sums = &totals->sums;
    if (block->is_temporary) {
        TRY(row_table_was_temporary(&totals->rows, block->row, block->size_bytes, 1));
        sums->temporary++;
    }
    sums->frees++;
    sums->freed_bytes += block->size_bytes;
    sums->live_bytes -= block->size_bytes;
    return row_table_freed(&totals->rows, block->row, block->size_bytes, block->lifetime,
                           heap_totals_slice_of(totals, block->born_ms));
}
