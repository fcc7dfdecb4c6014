// SPDX-License-Identifier: MIT
// schema: the chunk type of each table, and the column of each field.
//
// Writer, reader, repair and verification walk these tables and do not know the structs. The
// numbers are part of the file format (docs/format/recording.md): a released column keeps its
// number, and the number of a removed column is never used again.
// Invariant, held by a test: a column covers every byte of every struct in tables.h, except fields
// named `reserved`. Context: H; constant data.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "recording/format/tables.h"

// What the numbers of a column mean. The reader checks each index.
enum rec_column_kind {
    REC_COLUMN_NUMBER = 0,
    REC_COLUMN_STRING, // rec_string
};

struct rec_column {
    uint8_t id;          // 1..255, unique within its table
    uint8_t reference;   // id of an earlier column that usually has the same value, or 0
    uint8_t width_bytes; // field size: 4 or 8
    uint8_t kind;        // enum rec_column_kind
    uint8_t share;       // id of an earlier column with the count that these bytes belong to, or 0
    uint16_t offset;     // field offset in its entry
    uint64_t missing;    // value if a file lacks this column
    const char *name;
};

// The mean block size that predicts bytes from a number of blocks.
enum rec_mean {
    REC_MEAN_OWN = 0, // the mean of the entry, which is a row
    REC_MEAN_OF_ROW,  // the mean of the entry's row
    REC_MEAN_OF_BUCKET,
};

struct rec_table {
    uint32_t chunk_type;
    uint32_t mean;  // enum rec_mean
    bool is_single; // one entry, part of struct recording itself
    uint16_t column_count;
    size_t entry_bytes;
    size_t items_offset; // offset in struct recording of the array's pointer, or of the single
                         // entry
    size_t count_offset; // offset in struct recording of the size_t count; 0 if is_single
    size_t owner_offset; // offset in struct recording_owner of the array's pointer; 0 if is_single
    const struct rec_column *columns;
    const char *name;
};

// The tables in file order. The most informative tables come first, so that the beginning of a
// truncated file is useful.
enum rec_table_index {
    REC_TABLE_META,
    REC_TABLE_TOTALS,
    REC_TABLE_COUNTERS,
    REC_TABLE_STRINGS, // not an array of structs; its columns are enum string_column
    REC_TABLE_PROCESSES,
    REC_TABLE_THREADS,
    REC_TABLE_MODULES,
    REC_TABLE_SLICES,
    REC_TABLE_RSS_SAMPLES,
    REC_TABLE_FRAMES,
    REC_TABLE_NODES,
    REC_TABLE_ROWS,
    REC_TABLE_SYMBOLS,
    REC_TABLE_COHORTS,
    REC_TABLE_CELLS,
    REC_TABLE_SIZE_BUCKETS,
    REC_TABLE_LIFETIME_BUCKETS,
    REC_TABLE_MAPPINGS,
    REC_TABLE_ADHOC,
    REC_TABLE_REALLOCS,
    REC_TABLE_MEMORY_SNAPSHOTS,
    REC_TABLE_PARTS,
    REC_TABLE_SURVIVORS,
    REC_TABLE_MARKS,
    REC_TABLE_UNRECORDED,
    REC_TABLE_HOOKS,
    REC_TABLE_BLOCKS,
    REC_TABLE_COUNT,
};

// The columns of the strings: their lengths, and their bytes, concatenated without zero bytes.
enum string_column {
    STRING_COLUMN_LENGTHS = 1,
    STRING_COLUMN_TEXT = 2,
};

extern const struct rec_table rec_tables[REC_TABLE_COUNT];

// Return whether the table is part of the history of rows.
static inline bool rec_table_is_history(enum rec_table_index index)
{
    return index >= REC_TABLE_COHORTS && index <= REC_TABLE_LIFETIME_BUCKETS;
}

// Return the table of a chunk type, or NULL.
const struct rec_table *rec_table_find(uint32_t chunk_type);

// Return the column with that number, or NULL.
const struct rec_column *rec_column_find(const struct rec_table *table, uint8_t id);

// Return the entries of a table other than REC_TABLE_STRINGS, and their count. The owner of an
// array may change it through a const recording. A single entry must not be changed this way.
const void *rec_table_items(const struct rec_table *table, const struct recording *recording);
void *rec_table_array(const struct rec_table *table, const struct recording *recording);
size_t rec_table_count(const struct rec_table *table, const struct recording *recording);

// Return the value of a field. A signed field gives its bits.
uint64_t rec_column_get(const struct rec_column *column, const void *entry);

// Read the field of each of `count` entries of entry_bytes.
void rec_column_gather(const struct rec_column *column,
                       const void *entries,
                       size_t entry_bytes,
                       uint64_t *values,
                       size_t count);

// Set the field of each of `count` entries. Return false if a value does not fit; some fields may
// be set then.
bool rec_column_scatter(const struct rec_column *column,
                        void *entries,
                        size_t entry_bytes,
                        const uint64_t *values,
                        size_t count);
