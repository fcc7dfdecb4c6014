// SPDX-License-Identifier: MIT
// row_history: what rows did (cells, histograms, cohorts), as tables of a recording that are made
// row by row while it is written.
//
// As tables they would be larger than the rows themselves. So they are counted first, and made, one
// row at a time, when the writer asks for them. Kept as a whole are the cohorts, which cannot be
// counted without being made, and for which those of freed blocks, which are few, are sorted; and
// the cells of rows that have several, which are needed three times and lie scattered: as many
// bytes as they already take, bounded by its caps.
// Of a row and a slice there is alive what was allocated in it, less what of that was freed in it
// (what was freed in it but was not born before), less what of that was freed later: so cohorts
// that are alive at the end are stored nowhere.
// The row table is borrowed and must not change meanwhile; a forked copy of the recorder has its
// own.
// Context: H, one thread. Failure: ERR_NO_MEMORY.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "aggregate/rows/row_table.h"
#include "aggregate/totals/series.h"
#include "base/err.h"
#include "recording/format/table_supply.h"

// Zeroed is valid, for releasing.
struct row_history {
    struct row_table *table;       // borrowed
    struct rec_cohort_vec cohorts; // all, sorted
    struct rec_cell_vec listed;    // of rows with more than one, sorted
    size_t counts[REC_TABLE_COUNT];

    // How far the present table has been made.
    uint32_t next_row;
    size_t taken; // of what the latest row gave

    // What that was: one of them, for the present table.
    struct rec_cell_vec cells; // of a row that has one; else listed[run_first..run_end)
    size_t run_first;
    size_t run_end;
    struct rec_bucket_vec buckets;
};

// Counts. The peaks of rows are not touched.
enum err row_history_begin(struct row_history *history, struct row_table *table) MUST_USE;
void row_history_release(struct row_history *history);

// `history` must stay where it is while the supply is used.
struct table_supply row_history_supply(struct row_history *history);
