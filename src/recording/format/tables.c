// SPDX-License-Identifier: MIT
// tables: see tables.h.
#include "recording/format/tables.h"

#include <string.h>

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

uint64_t rec_counter_value(const struct recording *recording, const char *name)
{
    for (size_t i = 0; i < recording->counter_count; i++) {
        const struct rec_counter *counter = &recording->counters[i];
        if (strcmp(rec_string_get(recording, counter->name), name) == 0) {
            return counter->value;
        }
    }
    return 0;
}

size_t rec_first_entry_of_row(const void *table, size_t count, size_t entry_bytes, uint32_t row)
{
    size_t low = 0;
    size_t high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        uint32_t at;
        memcpy(&at, (const char *)table + middle * entry_bytes, sizeof(at));
        if (at < row) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}
