// SPDX-License-Identifier: MIT
// share: how many bytes so many blocks are likely to have.
//
// Most stacks allocate one size. So the bytes of a cell, of a cohort and so on are mostly its
// blocks times the mean size of the row's; and those of a size bucket about its blocks times the
// middle of the bucket. Context: H; pure.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "recording/format/schema.h"

// Predicts `column`, which has a share, of `count` entries of the table from their fields before
// it, and, where the mean is a row's, from the rows.
void rec_shares(const struct rec_table *table,
                const struct rec_column *column,
                const void *entries,
                size_t count,
                const struct rec_row *rows,
                size_t row_count,
                uint64_t *out);
