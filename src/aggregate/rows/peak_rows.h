// SPDX-License-Identifier: MIT
// peak_rows: scales the rows' bytes at the peak if blocks are unsampled.
//
// The rows count recorded blocks times their sampling weights. Their sum differs from the peak,
// which has a better estimate (peak_estimate.h). Rows without unsampled blocks are exact. The other
// rows are scaled together so that the sum equals the peak. If they have no recorded live block
// then, each gets a share by its own peak.
// Context: H.
#pragma once

#include <stdint.h>

#include "aggregate/rows/row_table.h"
#include "base/err.h"

// Collect the rows that change, as they are after it; none if nothing changes. Call
// row_table_commit_peak before. *sum_bytes is the sum over all rows then: `peak_bytes`, unless no
// row can be scaled.
enum err peak_rows_fit(const struct row_table *table,
                       uint64_t peak_bytes,
                       struct rec_row_vec *out_rows,
                       uint64_t *sum_bytes) MUST_USE;
