// SPDX-License-Identifier: MIT
#include "recording/format/share.h"

#include <string.h>

// Return blocks * bytes / of_blocks without overflow in between; 0 if of_blocks is 0.
static uint64_t share_of(uint64_t blocks, uint64_t bytes, uint64_t of_blocks)
{
    return of_blocks == 0 ? 0
                          : blocks * (bytes / of_blocks) + blocks * (bytes % of_blocks) / of_blocks;
}

static uint64_t middle_of(uint32_t bucket)
{
    return bucket >= REC_BUCKET_COUNT
               ? 0
               : rec_bucket_low(bucket) + (rec_bucket_low(bucket + 1) - rec_bucket_low(bucket)) / 2;
}

static uint64_t share_of_row(const struct rec_row *row, uint64_t blocks)
{
    return share_of(blocks, row->allocated_bytes, row->allocations);
}

static uint64_t share_of_entry(const struct rec_table *table,
                               const char *entry,
                               uint64_t blocks,
                               const struct rec_row *rows,
                               size_t row_count)
{
    uint32_t words[2] = {0}; // a row's index, and the word after it
    memcpy(words, entry, sizeof(words));
    switch ((enum rec_mean)table->mean) {
    case REC_MEAN_OF_BUCKET:
        return blocks * middle_of(words[1]);
    case REC_MEAN_OF_ROW:
        return words[0] < row_count ? share_of_row(rows + words[0], blocks) : 0;
    case REC_MEAN_OWN:
        break;
    }
    return share_of_row((const struct rec_row *)(const void *)entry, blocks);
}

void rec_shares(const struct rec_table *table,
                const struct rec_column *column,
                const void *entries,
                size_t count,
                const struct rec_row *rows,
                size_t row_count,
                uint64_t *out)
{
    const struct rec_column *blocks = rec_column_find(table, column->share);
    const char *entry = entries;
    rec_column_gather(blocks, entries, table->entry_bytes, out, count);
    for (size_t i = 0; i < count; i++, entry += table->entry_bytes) {
        out[i] = share_of_entry(table, entry, out[i], rows, row_count);
    }
}
