// SPDX-License-Identifier: MIT
// table_reader: the tables of one snapshot, put together chunk by chunk.
//
// A table grows at its end only: a chunk whose first entry is not the next one is refused, and so
// is every later one of that table. Memory is charged against a budget before it is asked for.
// What comes out has the right shape and nothing more; recording_repair checks the contents.
// Context: H; one thread at a time.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "host/containers/string_table.h"
#include "host/containers/vec.h"
#include "recording/format/schema.h"

struct table_reader {
    struct recording recording; // meta, totals and slice_ms; the arrays come at the end
    struct {
        void *items; // owned
        size_t count;
        size_t cap;
        uint64_t announced; // entries that the snapshot was going to have
        enum rec_form form; // in which they were stored
        bool is_there;      // at least one chunk was read
    } tables[REC_TABLE_STORED_COUNT];
    bool is_announced; // the snapshot's first chunk was read
    struct text_vec texts;
    struct u64_vec string_offsets;
    struct u64_vec values;    // scratch: one column
    struct u64_vec reference; // scratch: the one that it is compared with
    struct u64_vec shares;    // scratch: what it is predicted to be
    uint64_t budget_bytes;    // that the tables may still grow
};

void table_reader_release(struct table_reader *r);

// Takes the announcement of a snapshot's first chunk. ERR_CORRUPT if it makes no sense.
enum err table_reader_announce(struct table_reader *r, struct bytes payload) MUST_USE;

// Adds the entries of a chunk of that table. ERR_CORRUPT: not its next entries, or not well formed;
// ERR_LIMIT: the budget is used up; ERR_NO_MEMORY. The table is then as before.
enum err table_reader_add(struct table_reader *r,
                          enum rec_table_index index,
                          enum rec_form form,
                          struct bytes payload) MUST_USE;

// Takes `bytes` off the budget. ERR_LIMIT: there is less.
enum err table_reader_charge(struct table_reader *r, uint64_t bytes) MUST_USE;

// Decodes a chunk of a table outside of snapshots into `entries`, which has room for
// GROUP_MAX_ENTRIES. ERR_CORRUPT: not well formed, or it does not begin with entry expected_first.
enum err table_reader_group(struct table_reader *r,
                            const struct rec_table *table,
                            struct bytes payload,
                            uint64_t expected_first,
                            void *entries,
                            size_t *out_count) MUST_USE;

// Moves everything into `out`, which then owns it. ERR_NO_MEMORY leaves the reader as it was.
enum err table_reader_finish(struct table_reader *r, struct recording *out) MUST_USE;
