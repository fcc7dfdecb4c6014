// SPDX-License-Identifier: MIT
// row_cohorts: all cohorts of a row, from its cells and the cohorts of its freed blocks.
//
// The live blocks of a row and a step are those allocated in it, minus those of them freed in it
// (all freed in it, except those born before), minus those of them freed later. So the cohorts of
// live blocks are stored nowhere.
//
// Cells and cohorts say the same of each step: its births are its cohorts and what was freed in it.
// Births are counted when the recorder reads them; the thread that frees a block says an earlier
// time: in steps of 16 ms (BOOK_COHORT_BITS), and the recorder may be late. So a step may have more
// freed blocks than births, or no block left but bytes. The freed blocks that are too many were
// counted in the next step, and become its own. The sizes of these blocks are not known then.
//
//   births  step 1: 300 bytes    step 2: 78 bytes, born in step 1 and freed in step 9
//   live    step 1: 0 blocks, 222 bytes. So the freed one is of step 2, and 300 bytes of step 1
//           live.
//
// Memory: 16 KiB and a row's cohorts. Context: H. Failure: ERR_NO_MEMORY.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "aggregate/rows/cohort_table.h"
#include "aggregate/totals/series.h"
#include "base/err.h"
#include "recording/format/tables.h"

// What is known of a row.
struct row_part {
    uint32_t row;
    uint32_t shift; // a step is 1 << shift slices
    const struct rec_cell *cells;
    size_t cell_count;
    const struct rec_cohort *freed; // sorted; their slices are steps
    size_t freed_count;
};

// Zeroed is empty and valid.
struct row_cohorts {
    // Live blocks by step of birth. Outside of [first, end) everything is zero.
    uint32_t first;
    uint32_t end;
    int64_t blocks[SERIES_SLICES_MAX];
    int64_t bytes[SERIES_SLICES_MAX];
    struct rec_cohort_vec step; // owned: freed blocks of the present step of birth, by time of free
    struct rec_cohort_vec late; // owned: those that are too many in it
};

void row_cohorts_release(struct row_cohorts *made);

// Append the row's cohorts to `out`, sorted by birth and death, in slices.
enum err row_cohorts_add(struct row_cohorts *made,
                         const struct row_part *part,
                         struct rec_cohort_vec *out) MUST_USE;
