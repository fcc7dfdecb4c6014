// SPDX-License-Identifier: MIT
#include "profile/findings/peak_rise.h"

#include "base/compiler.h"
#include "base/minmax.h"

// Whether the heap may have been as large as at its peak in a slice.
static bool may_have_peak(const struct recording *recording, uint64_t slice)
{
    const struct rec_slice *slices = recording->slices;
    const uint64_t before_bytes = slice > 0 ? slices[slice - 1].live_bytes : 0;
    const struct rec_totals *totals = &recording->totals;
    return before_bytes + slices[slice].allocated_bytes >=
           excess_u64(totals->peak_bytes, totals->peak_error_bytes);
}

// The slice of the peak. The time of a peak is that at which the recorder saw it, while the counts
// of the threads may be in a slice before or after it: in the closest one that may have the peak.
static uint32_t find_peak(const struct recording *recording)
{
    const uint64_t last = recording->slice_count - 1;
    const uint64_t seen = min_u64(recording->totals.peak_time_ms / recording->slice_ms, last);
    for (uint64_t away = 0; away <= last; away++) {
        if (away <= seen && may_have_peak(recording, seen - away)) {
            return (uint32_t)(seen - away);
        }
        if (seen + away <= last && may_have_peak(recording, seen + away)) {
            return (uint32_t)(seen + away);
        }
    }
    return (uint32_t)seen;
}

// The slice before which the rise to the peak began: the level at its end is the trough's. REC_NONE
// for the beginning of the run.
static uint32_t find_trough(const struct recording *recording, uint32_t peak)
{
    const struct rec_slice *slices = recording->slices;
    uint32_t at = peak;
    while (at > 0 && slices[at - 1].live_bytes > recording->totals.peak_bytes / 2) {
        at--;
    }
    if (at == 0) {
        return REC_NONE;
    }
    uint32_t lowest = --at;
    while (at > 0 && slices[at - 1].live_bytes <= slices[at].live_bytes) {
        at--;
        lowest = slices[at].live_bytes < slices[lowest].live_bytes ? at : lowest;
    }
    return lowest == 0 && slices[0].live_bytes > 0 ? REC_NONE : lowest;
}

// Bytes of a row that are live at the end of the trough's slice. Add what is freed between the two.
static int64_t live_at_trough(const struct recording *recording,
                              const struct u32_vec *cell_starts,
                              uint32_t row,
                              uint32_t trough,
                              uint32_t peak,
                              uint64_t *freed_bytes)
{
    int64_t live = 0;
    for (uint32_t i = cell_starts->items[row]; i < cell_starts->items[row + 1]; i++) {
        const struct rec_cell *cell = &recording->cells[i];
        if (trough != REC_NONE && cell->slice <= trough) {
            live += (int64_t)(cell->allocated_bytes - cell->freed_bytes);
        } else if (cell->slice <= peak) {
            *freed_bytes += cell->freed_bytes;
        }
    }
    return live;
}

static void add_group(const struct row_groups *groups,
                      const struct u32_vec *cell_starts,
                      uint32_t group,
                      uint32_t trough,
                      uint32_t peak,
                      struct peak_rise *rise)
{
    const struct recording *recording = &groups->profile->recording;
    int64_t sum = 0;
    int64_t most = 0;
    rise->threads.items[group] = REC_NONE;
    for (uint32_t i = groups->row_first.items[group]; i < groups->row_first.items[group + 1]; i++) {
        const uint32_t row = groups->rows.items[i];
        const int64_t gain =
            (int64_t)recording->rows[row].peak_bytes -
            live_at_trough(recording, cell_starts, row, trough, peak, &rise->freed_bytes);
        sum += gain;
        if (gain > most) {
            most = gain;
            rise->threads.items[group] = recording->rows[row].thread;
        }
    }
    rise->gained.items[group] = sum > 0 ? (uint64_t)sum : 0;
}

enum err peak_rise_build(const struct row_groups *groups, struct peak_rise *out)
{
    const struct recording *recording = &groups->profile->recording;
    CLEANUP(peak_rise_release) struct peak_rise rise = {.mark = REC_NONE};
    const size_t count = groups->groups.len;
    TRY(u64_vec_resize(&rise.gained, count));
    TRY(u32_vec_resize(&rise.threads, count));
    if (recording->slice_count > 0 && recording->slice_ms > 0) {
        const uint32_t peak = find_peak(recording);
        const uint32_t trough = find_trough(recording, peak);
        rise.peak_ms = (peak + UINT64_C(1)) * recording->slice_ms;
        if (trough != REC_NONE) {
            rise.trough_ms = (trough + UINT64_C(1)) * recording->slice_ms;
            rise.trough_bytes = recording->slices[trough].live_bytes;
        }
        CLEANUP(u32_vec_release) struct u32_vec cell_starts = {0};
        TRY(rec_row_starts(recording->cells, recording->cell_count, sizeof(recording->cells[0]),
                           recording->row_count, &cell_starts));
        for (uint32_t group = 0; group < count; group++) {
            add_group(groups, &cell_starts, group, trough, peak, &rise);
        }
    }
    for (uint32_t i = 0; i < recording->mark_count; i++) {
        const struct rec_mark *mark = &recording->marks[i];
        if (mark->text != 0 && mark->time_ms <= recording->totals.peak_time_ms) {
            rise.mark = i;
        }
    }
    *out = TAKE(rise);
    return ERR_OK;
}

uint64_t peak_rise_error_bytes(uint64_t peak_bytes, uint64_t gained_bytes)
{
    const uint64_t trough_bytes = peak_bytes > gained_bytes ? peak_bytes - gained_bytes : 0;
    return peak_bytes + trough_bytes;
}

void peak_rise_release(struct peak_rise *rise)
{
    u64_vec_release(&rise->gained);
    u32_vec_release(&rise->threads);
}
