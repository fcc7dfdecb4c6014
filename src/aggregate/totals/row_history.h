// SPDX-License-Identifier: MIT
// row_history: supplies the history of rows (cells, histograms, cohorts) as tables of a recording,
// row by row while it is written.
//
// Whole tables would be larger than the rows themselves. So entries are counted first, and made one
// row at a time when the writer asks for them. Two tables are kept whole. Cohorts cannot be counted
// without being made, and the few cohorts of freed blocks must be sorted. Cells of rows with
// several cells are needed three times and are scattered in memory: the copy is as large as they
// are, bounded by their limits. The live blocks of a row and a slice are the blocks allocated in
// it, minus those of them freed in it (all freed in it, except those born before), minus those of
// them freed later. So cohorts of live blocks are stored nowhere. The row table is borrowed and
// must not change meanwhile; a forked copy of the recorder has its own.
// Context: H, one thread.
// Failure: ERR_NO_MEMORY.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "aggregate/rows/row_table.h"
#include "aggregate/totals/series.h"
#include "base/err.h"
#include "recording/format/table_supply.h"

// A zeroed object may be released.
struct row_history {
    struct row_table *table;       // borrowed
    struct rec_cohort_vec cohorts; // all, sorted
    struct rec_cell_vec listed;    // of rows with several cells, sorted
    size_t counts[REC_TABLE_COUNT];

    // Progress in the present table.
    uint32_t next_row;
    size_t taken; // entries of the latest row that were supplied

    // Entries of the latest row: one of these, by the present table.
    struct rec_cell_vec cells; // of a row with one; else listed[run_first..run_end)
    size_t run_first;
    size_t run_end;
    struct rec_bucket_vec buckets;
};

// Count the entries. The peaks of rows stay unchanged.
enum err row_history_begin(struct row_history *history, struct row_table *table) MUST_USE;
void row_history_release(struct row_history *history);

// Return a supply that borrows `history`, which must not move.
struct table_supply row_history_supply(struct row_history *history);
