// SPDX-License-Identifier: MIT
#include "aggregate/rows/peak_rows.h"

#include <string.h>

struct held {
    uint64_t whole_bytes;    // by rows whose blocks were all recorded
    uint64_t weighted_bytes; // by the other rows
    uint64_t highest_bytes;  // the sum of the other rows' own peaks
};

// Return the base of the row's share.
static uint64_t weight_of(const struct held *held, const struct rec_row *row)
{
    return held->weighted_bytes > 0 ? row->peak_bytes : row->own_peak_bytes;
}

static struct held sum_of(const struct row_table *table)
{
    struct held held = {0};
    for (uint32_t i = 0; i < table->rows.len; i++) {
        const struct rec_row *row = table->rows.items + i;
        const bool is_weighted = row_table_is_weighted(table, i);
        *(is_weighted ? &held.weighted_bytes : &held.whole_bytes) += row->peak_bytes;
        held.highest_bytes += is_weighted ? row->own_peak_bytes : 0;
    }
    return held;
}

// Scale weighted rows so that their sum is `wanted_bytes`. Each begins at the end of the previous
// one, so rounding errors cancel out.
static void scale_rows(const struct row_table *table,
                       struct rec_row *rows,
                       const struct held *held,
                       uint64_t wanted_bytes)
{
    const uint64_t all = held->weighted_bytes > 0 ? held->weighted_bytes : held->highest_bytes;
    const double factor = (double)wanted_bytes / (double)all;
    uint64_t before = 0;
    uint64_t scaled_before = 0;
    for (uint32_t i = 0; i < table->rows.len; i++) {
        if (!row_table_is_weighted(table, i)) {
            continue;
        }
        before += weight_of(held, &rows[i]);
        const double end = (double)before * factor;
        uint64_t scaled = end < (double)wanted_bytes ? (uint64_t)end : wanted_bytes;
        scaled = before == all ? wanted_bytes : scaled;
        rows[i].peak_bytes = scaled - scaled_before;
        scaled_before = scaled;
        if (rows[i].own_peak_bytes < rows[i].peak_bytes) {
            rows[i].own_peak_bytes = rows[i].peak_bytes;
        }
    }
}

enum err peak_rows_fit(const struct row_table *table,
                       uint64_t peak_bytes,
                       struct rec_row_vec *out_rows,
                       uint64_t *sum_bytes)
{
    const struct held held = sum_of(table);
    const bool is_possible = held.highest_bytes > 0 && peak_bytes >= held.whole_bytes;
    const uint64_t wanted_bytes = peak_bytes - held.whole_bytes;
    *sum_bytes = is_possible ? peak_bytes : held.whole_bytes + held.weighted_bytes;
    if (!is_possible || wanted_bytes == held.weighted_bytes) {
        return ERR_OK;
    }
    TRY(rec_row_vec_resize(out_rows, table->rows.len));
    memcpy(out_rows->items, table->rows.items, table->rows.len * sizeof(*out_rows->items));
    scale_rows(table, out_rows->items, &held, wanted_bytes);
    return ERR_OK;
}
