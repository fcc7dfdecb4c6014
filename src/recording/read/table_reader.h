// SPDX-License-Identifier: MIT
// table_reader: assemble the tables of one snapshot chunk by chunk.
//
// A table grows at its end only. The reader refuses a chunk whose first entry is not the next one,
// and every later chunk of that table. It charges memory to a budget before it allocates. The
// result has the right shape, but unchecked contents: recording_repair checks them.
// Context: H; one thread at a time.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "host/containers/string_table.h"
#include "host/containers/vec.h"
#include "recording/format/schema.h"
#include "recording/merge/row_merger.h"

struct table_reader {
    struct recording recording; // meta, totals and slice_ms; arrays only after table_reader_finish
    struct {
        void *items; // owned
        size_t count;
        size_t cap;
        size_t merged;      // entries that were added to others (table_reader_merge_threads)
        uint64_t announced; // number of entries that the snapshot announced
        bool is_there;      // at least one chunk was read
    } tables[REC_TABLE_COUNT];
    bool is_announced; // the snapshot's first chunk was read
    struct text_vec texts;
    struct u64_vec string_offsets;
    struct u64_vec values;    // scratch: one column
    struct u64_vec reference; // scratch: its reference column
    struct u64_vec shares;    // scratch: its predicted bytes
    uint64_t budget_bytes;    // bytes that the tables may still grow by
};

void table_reader_release(struct table_reader *r);

// Read the announcement in a snapshot's first chunk. ERR_CORRUPT if it makes no sense.
enum err table_reader_announce(struct table_reader *r, struct bytes payload) MUST_USE;

// The memory that the announced entries take, without the bytes of strings. UINT64_MAX if that is
// more than 64 bits have.
uint64_t table_reader_need(const struct table_reader *r);

// Add the entries of a chunk of that table. ERR_CORRUPT: malformed, or not the table's next
// entries; ERR_LIMIT: the budget is exhausted; ERR_NO_MEMORY. A failure leaves the table unchanged.
enum err table_reader_add(struct table_reader *r, enum rec_table_index index, struct bytes payload)
    MUST_USE;

// Empty the tables of the history of rows.
void table_reader_drop_history(struct table_reader *r);

// Merge the rows from number `from` on into those before, which are merged already (row_merger.h).
// Threads must be there. ERR_NO_MEMORY.
enum err table_reader_merge_threads(struct table_reader *r, struct row_merger *merger, size_t from)
    MUST_USE;

// Move everything into `out`, which then owns it. ERR_NO_MEMORY leaves the reader unchanged.
enum err table_reader_finish(struct table_reader *r, struct recording *out) MUST_USE;
