// SPDX-License-Identifier: MIT
// peak_rows: who owned the peak of a recording of which blocks were left out.
//
// What rows held at the peak is counted by what recorded blocks stood for, so the sum of it differs
// from the peak, which is known better (peak_estimate.h). Rows all of whose blocks were recorded
// are right; the others are scaled together so that the sum is the peak. Where no recorded block of
// theirs was alive then, each has a share by the highest that it held ever. Context: H.
#pragma once

#include <stdint.h>

#include "aggregate/rows/row_table.h"
#include "base/err.h"

// The rows with that change, after row_table_fold; none if nothing changes. *sum_bytes: what they
// held in all at the peak: `peak_bytes`, unless no row can be scaled.
enum err peak_rows_fit(const struct row_table *table,
                       uint64_t peak_bytes,
                       struct rec_row_vec *out_rows,
                       uint64_t *sum_bytes) MUST_USE;
