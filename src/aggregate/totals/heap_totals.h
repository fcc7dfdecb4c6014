// SPDX-License-Identifier: MIT
// heap_totals: the rows, sums, time slices and peak of one heap.
//
// Every aggregation uses it. heap_totals_allocated and heap_totals_freed count logs whose blocks
// the caller knows (row, size, birth). The aggregator (aggregator.h) adds processes and threads,
// and the entries of their books, which are in no order: the peak is that of their shared sum.
//
//   heap_totals_init ... heap_totals_advance, heap_totals_allocated, heap_totals_freed ...
//   heap_totals_finish; then rows, series_collect and row_history have what a recording needs
//
// Memory is bounded by rows times slices, or by the limits of heap_totals_init.
// Context: H, one thread.
// Failure: ERR_NO_MEMORY, ERR_LIMIT (2^32 rows).
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
    uint64_t live_blocks;
    uint64_t peak_bytes;
    uint64_t peak_blocks;
    uint64_t peak_time_ms;
    uint64_t temporary_bytes;
};

// Initialize zeroed memory with the limits of the row table. UINT32_MAX: the history of rows never
// becomes coarser than the time slices.
void heap_totals_init(struct heap_totals *totals, size_t cells_max, size_t cohorts_max);
void heap_totals_release(struct heap_totals *totals);

// Return the memory in use besides the structure. Visits every row.
size_t heap_totals_bytes(const struct heap_totals *totals);

// Advance to now_ms. An earlier time has no effect.
enum err heap_totals_advance(struct heap_totals *totals, uint64_t now_ms) MUST_USE;

// Extend the time slices to end_ms, with or without further events.
enum err heap_totals_extend(struct heap_totals *totals, uint64_t end_ms) MUST_USE;

// Complete the rows and their peaks after the last event.
enum err heap_totals_finish(struct heap_totals *totals) MUST_USE;

// If a shared sum found the peak (aggregator_book.h), replace its size by the sum of what all rows
// held at the peak. That includes what threads had not yet added to the shared sum.
void heap_totals_sum_peaks(struct heap_totals *totals);

static inline uint32_t heap_totals_slice_of(const struct heap_totals *totals, uint64_t time_ms)
{
    return (uint32_t)(time_ms >> totals->series.slice_shift);
}

// Add `count` new blocks of `bytes` in all. Inline, as all functions below: each event calls them.
static inline void heap_totals_raise(struct heap_totals *totals, uint64_t count, uint64_t bytes)
{
    totals->sums.allocations += count;
    totals->sums.allocated_bytes += bytes;
    totals->sums.live_bytes += bytes;
    totals->live_blocks += count;
}

// Remove `count` freed blocks of `bytes` in all.
static inline void heap_totals_lower(struct heap_totals *totals, uint64_t count, uint64_t bytes)
{
    totals->sums.frees += count;
    totals->sums.freed_bytes += bytes;
    totals->sums.live_bytes -= bytes;
    totals->live_blocks -= count;
}

// Note that all_bytes are live: perhaps a new peak.
static inline void heap_totals_note_height(struct heap_totals *totals, uint64_t all_bytes)
{
    if (all_bytes > totals->sums.slice_max_bytes) {
        totals->sums.slice_max_bytes = all_bytes;
    }
    if (all_bytes > totals->peak_bytes) {
        totals->peak_bytes = all_bytes;
        totals->peak_blocks = totals->live_blocks;
        totals->peak_time_ms = totals->now_ms;
        totals->rows.peak_number++;
    }
}

// Count the allocation of a block by a row of row_table_get.
static inline MUST_USE enum err
heap_totals_allocated(struct heap_totals *totals, uint32_t row, uint64_t size_bytes)
{
    TRY(row_table_allocated(&totals->rows, row, size_bytes));
    heap_totals_raise(totals, 1, size_bytes);
    heap_totals_note_height(totals, totals->sums.live_bytes);
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
    if (block->is_temporary) {
        TRY(row_table_was_temporary(&totals->rows, block->row, block->size_bytes, 1));
        totals->sums.temporary++;
        totals->temporary_bytes += block->size_bytes;
    }
    heap_totals_lower(totals, 1, block->size_bytes);
    return row_table_freed(&totals->rows, block->row, block->size_bytes, block->lifetime,
                           heap_totals_slice_of(totals, block->born_ms));
}
