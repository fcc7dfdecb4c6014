// SPDX-License-Identifier: MIT
// share: predict the bytes of a number of blocks.
//
// Most stacks allocate blocks of one size. So the bytes of a cell or a cohort are mostly its blocks
// times the mean size of its row, and the bytes of a size bucket are about its blocks times the
// middle of the bucket. Context: H; pure.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "recording/format/schema.h"

// Predict `column`, which has a share, for `count` entries of the table. The inputs are the earlier
// fields of each entry and, where the mean is a row's, the rows.
void rec_shares(const struct rec_table *table,
                const struct rec_column *column,
                const void *entries,
                size_t count,
                const struct rec_row *rows,
                size_t row_count,
                uint64_t *out);
