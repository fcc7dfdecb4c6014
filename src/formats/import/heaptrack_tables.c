// SPDX-License-Identifier: MIT
// heaptrack_tables: the sums of the events of a heaptrack file, as tables of a recording.
#include "aggregate/totals/row_history.h"
#include "base/minmax.h"
#include "formats/import/heaptrack_file.h"

static MUST_USE enum err fill_rows(const struct heaptrack *h)
{
    const struct rec_row_vec *rows = &h->totals.rows.rows;
    struct recording_builder *b = h->import->b;
    TRY(rows_vec_resize(&b->rows, rows->len));
    for (size_t i = 0; i < rows->len; i++) {
        b->rows.items[i] = rows->items[i];
    }
    return ERR_OK;
}

// Make the table in `items`, which has room for the supply's count of entries.
static MUST_USE enum err
make_table(const struct table_supply *supply, enum rec_table_index table, void *items)
{
    supply->begin(supply->context, table);
    return supply->next(supply->context, table, items, supply->count(supply->context, table));
}

static MUST_USE enum err fill_history(struct heaptrack *h)
{
    CLEANUP(row_history_release) struct row_history history = {0};
    struct recording_builder *b = h->import->b;
    TRY(row_history_begin(&history, &h->totals.rows));
    const struct table_supply supply = row_history_supply(&history);
    TRY(cells_vec_resize(&b->cells, history.counts[REC_TABLE_CELLS]));
    TRY(size_buckets_vec_resize(&b->size_buckets, history.counts[REC_TABLE_SIZE_BUCKETS]));
    TRY(lifetime_buckets_vec_resize(&b->lifetime_buckets,
                                    history.counts[REC_TABLE_LIFETIME_BUCKETS]));
    TRY(make_table(&supply, REC_TABLE_CELLS, b->cells.items));
    TRY(make_table(&supply, REC_TABLE_SIZE_BUCKETS, b->size_buckets.items));
    TRY(make_table(&supply, REC_TABLE_LIFETIME_BUCKETS, b->lifetime_buckets.items));
    b->cohorts = (struct cohorts_vec){
        .items = history.cohorts.items, .len = history.cohorts.len, .cap = history.cohorts.cap};
    history.cohorts = (struct rec_cohort_vec){0};
    return ERR_OK;
}

static MUST_USE enum err fill_slices(struct heaptrack *h)
{
    struct recording_builder *b = h->import->b;
    const struct series *series = &h->totals.series;
    b->slice_ms = series->slice_ms;
    TRY(slices_vec_resize(&b->slices, series->current + 1));
    b->slices.len = series_collect(series, &h->totals.sums, b->slices.items);
    for (uint32_t i = 0; i < b->slices.len; i++) {
        const struct rec_rss_sample sample = {.time_ms = (uint64_t)i << series->slice_shift,
                                              .rss_bytes = h->rss_bytes[i]};
        if (sample.rss_bytes > 0) {
            TRY(rss_samples_vec_push(&b->rss_samples, sample));
            uint64_t *highest = &b->processes.items[0].peak_rss_bytes;
            *highest = max_u64(*highest, sample.rss_bytes);
        }
    }
    return ERR_OK;
}

enum err heaptrack_fill_tables(struct heaptrack *h)
{
    const struct heap_totals *totals = &h->totals;
    struct recording_builder *b = h->import->b;
    TRY(heap_totals_finish(&h->totals));
    TRY(fill_rows(h));
    TRY(fill_history(h));
    TRY(fill_slices(h));
    b->totals.peak_time_ms = totals->peak_time_ms;
    b->processes.items[0].peak_bytes = totals->peak_bytes;
    b->processes.items[0].end_ms = totals->now_ms;
    b->threads.items[0].end_ms = totals->now_ms;
    b->meta.runtime_ms = totals->now_ms;
    recording_builder_sum(b);
    return ERR_OK;
}
