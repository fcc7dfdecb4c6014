// SPDX-License-Identifier: MIT
// realloc_table: how far the reallocs of each row grew their blocks.
//
// Only reallocs that grew a block to WIRE_GREW_MIN bytes or more are counted: what realloc may copy
// of smaller blocks is little. Few rows have any, so they are a table of their own.
// Invariant: rows are unique. Memory: 40 bytes an entry, and 12 to 24 to find it.
// Context: H, one thread. Failure: ERR_NO_MEMORY, ERR_LIMIT.
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "host/containers/map_u64.h"
#include "host/containers/vec.h"
#include "recording/format/tables.h"

DEFINE_VEC(rec_realloc_vec, struct rec_realloc);

struct realloc_table {
    struct rec_realloc_vec entries; // in the order of their first realloc
    struct map_u64 places;          // row -> entry
};

void realloc_table_release(struct realloc_table *table);

// Count a realloc at `row` that grew a block from old_bytes to size_bytes. Sums saturate.
enum err realloc_table_add(struct realloc_table *table,
                           uint32_t row,
                           uint64_t old_bytes,
                           uint64_t size_bytes) MUST_USE;

// Give rows new numbers: row r becomes rows[r]. Several may become one.
enum err realloc_table_renumber(struct realloc_table *table, const uint32_t *rows) MUST_USE;

// Copy the entries, sorted by row.
enum err realloc_table_collect(const struct realloc_table *table, struct rec_realloc_vec *out)
    MUST_USE;
