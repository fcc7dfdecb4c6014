// SPDX-License-Identifier: MIT
#include "aggregate/totals/series.h"

#include <string.h>

#include "base/minmax.h"

void series_init(struct series *series)
{
    series->slice_ms = 1;
}

// Add the events since `opened` to `slice`.
static void account_slice(struct rec_slice *slice,
                          const struct running_sums *opened,
                          const struct running_sums *sums)
{
    slice->allocations += sums->allocations - opened->allocations;
    slice->allocated_bytes += sums->allocated_bytes - opened->allocated_bytes;
    slice->frees += sums->frees - opened->frees;
    slice->freed_bytes += sums->freed_bytes - opened->freed_bytes;
    slice->temporary += sums->temporary - opened->temporary;
    slice->live_bytes = sums->live_bytes + sums->last_ended_bytes;
    uint64_t max_bytes = sums->slice_max_bytes;
    max_bytes = max_u64(max_bytes, slice->live_bytes);
    if (max_bytes > slice->live_max_bytes) {
        slice->live_max_bytes = max_bytes;
    }
}

static void merge_slices(struct rec_slice *into, const struct rec_slice *later)
{
    into->allocations += later->allocations;
    into->allocated_bytes += later->allocated_bytes;
    into->frees += later->frees;
    into->freed_bytes += later->freed_bytes;
    into->temporary += later->temporary;
    into->live_bytes = later->live_bytes;
    if (later->live_max_bytes > into->live_max_bytes) {
        into->live_max_bytes = later->live_max_bytes;
    }
}

static void double_width(struct series *series)
{
    uint32_t count = series->current + 1;
    for (uint32_t i = 0; i < count; i += 2) {
        struct rec_slice merged = series->slices[i];
        if (i + 1 < count) {
            merge_slices(&merged, series->slices + i + 1);
        }
        series->slices[i / 2] = merged;
    }
    uint32_t merged_count = (count + 1) / 2;
    memset(series->slices + merged_count, 0,
           (SERIES_SLICES_MAX - merged_count) * sizeof(series->slices[0]));
    series->current = merged_count - 1;
    series->slice_ms *= 2;
    series->slice_shift++;
}

uint32_t series_advance(struct series *series, struct running_sums *sums, uint64_t now_ms)
{
    uint32_t shift = 0;
    if (now_ms / series->slice_ms <= series->current) {
        return shift;
    }
    account_slice(series->slices + series->current, &series->opened, sums);
    while (now_ms / series->slice_ms >= SERIES_SLICES_MAX) {
        double_width(series);
        shift++;
    }
    uint32_t target = (uint32_t)(now_ms / series->slice_ms);
    const uint64_t live_bytes = sums->live_bytes + sums->last_ended_bytes;
    while (series->current < target) {
        series->current++;
        series->slices[series->current] =
            (struct rec_slice){.live_bytes = live_bytes, .live_max_bytes = live_bytes};
    }
    sums->slice_max_bytes = live_bytes;
    series->opened = *sums;
    return shift;
}

uint32_t
series_collect(const struct series *series, const struct running_sums *sums, struct rec_slice *out)
{
    memcpy(out, series->slices, (series->current + 1) * sizeof(*out));
    account_slice(out + series->current, &series->opened, sums);
    return series->current + 1;
}
