// SPDX-License-Identifier: MIT
#include "aggregate/totals/heap_totals.h"

#include "base/minmax.h"

void heap_totals_init(struct heap_totals *totals, size_t cells_max, size_t cohorts_max)
{
    totals->rows.cells_max = cells_max;
    totals->rows.cohorts_max = cohorts_max;
    series_init(&totals->series);
}

void heap_totals_release(struct heap_totals *totals)
{
    row_table_release(&totals->rows);
}

size_t heap_totals_bytes(const struct heap_totals *totals)
{
    return row_table_bytes(&totals->rows);
}

enum err heap_totals_extend(struct heap_totals *totals, uint64_t end_ms)
{
    const uint32_t merged = series_advance(&totals->series, &totals->sums, end_ms);
    return LIKELY(totals->series.current == totals->rows.slice && merged == 0)
               ? ERR_OK
               : row_table_advance(&totals->rows, totals->series.current, merged);
}

enum err heap_totals_advance(struct heap_totals *totals, uint64_t now_ms)
{
    if (now_ms <= totals->now_ms) {
        return ERR_OK;
    }
    totals->now_ms = now_ms;
    return heap_totals_extend(totals, now_ms);
}

enum err heap_totals_finish(struct heap_totals *totals)
{
    TRY(row_table_count(&totals->rows));
    for (uint32_t row = 0; row < totals->rows.rows.len; row++) {
        row_table_commit_peak(&totals->rows, row, true, 0);
    }
    return ERR_OK;
}

void heap_totals_sum_peaks(struct heap_totals *totals)
{
    uint64_t bytes = 0;
    uint64_t blocks = 0;
    for (uint32_t i = 0; i < totals->rows.rows.len; i++) {
        struct rec_row *row = totals->rows.rows.items + i;
        const bool is_sound = (int64_t)row->peak_bytes >= 0 && (int64_t)row->peak_blocks >= 0;
        row->peak_bytes = is_sound ? row->peak_bytes : 0; // a killed or false thread's
        row->peak_blocks = is_sound ? row->peak_blocks : 0;
        row->own_peak_bytes = max_u64(row->own_peak_bytes, row->peak_bytes);
        bytes += row->peak_bytes;
        blocks += row->peak_blocks;
    }
    totals->peak_bytes = bytes;
    totals->peak_blocks = blocks;
}
