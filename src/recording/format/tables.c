// SPDX-License-Identifier: MIT
#include "recording/format/tables.h"

#include <string.h>

#include "base/minmax.h"
#include "base/search.h"

uint64_t rec_bucket_low(uint32_t bucket)
{
    if (bucket < REC_BUCKET_SINGLES) {
        return bucket;
    }
    if (bucket >= REC_BUCKET_COUNT) {
        return UINT64_MAX;
    }
    uint32_t octave = REC_BUCKET_OCTAVE + (bucket - REC_BUCKET_SINGLES) / 4;
    uint64_t quarter = (bucket - REC_BUCKET_SINGLES) % 4;
    return (4 + quarter) << (octave - 2);
}

const char *rec_string_get(const struct recording *recording, rec_string id)
{
    const struct rec_strings *strings = &recording->strings;
    if (id >= strings->count || strings->offsets[id] >= strings->data_bytes) {
        return "";
    }
    return strings->data + strings->offsets[id];
}

const struct rec_counter *rec_counter_find(const struct recording *recording, const char *name)
{
    for (size_t i = 0; i < recording->counter_count; i++) {
        const struct rec_counter *counter = &recording->counters[i];
        if (strcmp(rec_string_get(recording, counter->name), name) == 0) {
            return counter;
        }
    }
    return NULL;
}

uint64_t rec_counter_value(const struct recording *recording, const char *name)
{
    const struct rec_counter *counter = rec_counter_find(recording, name);
    return counter != NULL ? counter->value : 0;
}

uint64_t rec_snapshot_counted(const struct rec_memory_snapshot *snapshot, uint32_t kind)
{
    return excess_u64(snapshot->bytes[kind - 1], snapshot->repeated_bytes[kind - 1]);
}

uint64_t rec_snapshot_counted_rss(const struct rec_memory_snapshot *snapshot)
{
    uint64_t repeated_bytes = 0;
    for (uint32_t kind = 1; kind <= REC_PART_KINDS; kind++) {
        repeated_bytes += snapshot->bytes[kind - 1] - rec_snapshot_counted(snapshot, kind);
    }
    return excess_u64(snapshot->rss_bytes, repeated_bytes);
}

uint64_t rec_rss_sample_counted(const struct rec_rss_sample *sample)
{
    return excess_u64(sample->rss_bytes, sample->repeated_anonymous_bytes +
                                             sample->repeated_file_bytes +
                                             sample->repeated_shmem_bytes);
}

void rec_rows_add_up(const struct rec_row *rows, size_t count, struct rec_totals *out)
{
    struct rec_totals sum = {0};
    for (size_t i = 0; i < count; i++) {
        sum.allocations += rows[i].allocations;
        sum.allocated_bytes += rows[i].allocated_bytes;
        sum.frees += rows[i].frees;
        sum.freed_bytes += rows[i].freed_bytes;
        sum.temporary += rows[i].temporary;
        sum.temporary_bytes += rows[i].temporary_bytes;
        sum.peak_bytes += rows[i].peak_bytes;
        sum.peak_blocks += rows[i].peak_blocks;
    }
    out->allocations = sum.allocations;
    out->allocated_bytes = sum.allocated_bytes;
    out->frees = sum.frees;
    out->freed_bytes = sum.freed_bytes;
    out->temporary = sum.temporary;
    out->temporary_bytes = sum.temporary_bytes;
    out->peak_bytes = sum.peak_bytes;
    out->peak_blocks = sum.peak_blocks;
}

enum {
    NEAR_ENTRIES = 4
};

static uint32_t row_at(const void *table, size_t entry_bytes, size_t at)
{
    uint32_t row;
    memcpy(&row, (const char *)table + at * entry_bytes, sizeof(row));
    return row;
}

size_t rec_first_entry_of_row(const void *table, size_t count, size_t entry_bytes, uint32_t row)
{
    if (count == 0) {
        return 0;
    }
    // Most tables have about as many entries for each row: the search begins where the entry should
    // be, and doubles its steps until the entry is between `low` and `high`.
    const uint64_t last_row = row_at(table, entry_bytes, count - 1);
    size_t low = (size_t)((double)row / ((double)last_row + 1) * (double)count);
    low = low < count ? low : count - 1;
    size_t high = low;
    size_t step = NEAR_ENTRIES;
    while (low > 0 && row_at(table, entry_bytes, low) >= row) {
        low = low > step ? low - step : 0;
        step *= 2;
    }
    for (step = NEAR_ENTRIES; high < count && row_at(table, entry_bytes, high) < row; step *= 2) {
        high = count - high > step ? high + step : count;
    }
    return low + FIRST_WHERE(at, high - low, row_at(table, entry_bytes, low + at) >= row);
}

enum err rec_row_starts(
    const void *table, size_t count, size_t entry_bytes, size_t row_count, struct u32_vec *out)
{
    u32_vec_clear(out);
    TRY(u32_vec_resize(out, row_count + 1));
    size_t at = 0;
    for (size_t row = 0; row < row_count; row++) {
        while (at < count && row_at(table, entry_bytes, at) < row) {
            at++;
        }
        out->items[row] = (uint32_t)at;
    }
    out->items[row_count] = (uint32_t)count;
    return ERR_OK;
}
