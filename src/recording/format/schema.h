// SPDX-License-Identifier: MIT
// schema: which table is stored under which name, and which field in which column.
//
// Writer, reader, repair and verification all walk these tables instead of knowing the structs. The
// numbers are part of the file format (docs/format/recording.md): once released, a column keeps
// its number, and a removed one's number is not used again. Every byte of every struct in tables.h
// is covered by a column, except fields named `reserved`; a test holds that. Context: H; constant
// data.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "recording/format/tables.h"

// What the numbers of a column mean; what is an index is checked when a file is read.
enum rec_column_kind {
    REC_COLUMN_NUMBER = 0,
    REC_COLUMN_STRING, // rec_string
};

struct rec_column {
    uint8_t id;          // 1..255, unique within its table
    uint8_t reference;   // id of an earlier column that this one tends to equal, or 0
    uint8_t width_bytes; // of the field: 4 or 8
    uint8_t kind;        // enum rec_column_kind
    uint8_t share;       // id of an earlier column that counts what these bytes belong to, or 0
    uint16_t offset;     // of the field in its entry
    uint64_t missing;    // value if a file does not have this column
    const char *name;
};

// How a table is stored. Only recordings of 2026 have folded tables (folded_history).
enum rec_form {
    REC_FORM_PLAIN,
    REC_FORM_FOLDED,  // without the entries that follow from their row
    REC_FORM_FLOWING, // folded cells, whose frees lack what the cohorts say
};

// A row's only entry in each table of its history, in a folded history. Numbered as rows are.
struct rec_lone {
    uint32_t slice;           // of its cell, or REC_NONE
    uint32_t has_one_size;    // 1: all blocks are in the size bucket of their mean
    uint32_t lifetime_bucket; // of all that was freed, or REC_NONE
    uint32_t cohort_slice;    // birth of all blocks that are live at the end
};

// What size its blocks are taken to have, where bytes are predicted from their number.
enum rec_mean {
    REC_MEAN_OWN = 0, // the entry is a row: that of its blocks
    REC_MEAN_OF_ROW,  // that of the row's blocks
    REC_MEAN_OF_BUCKET,
};

struct rec_table {
    uint32_t chunk_type;
    uint32_t mean;  // enum rec_mean
    bool is_single; // one entry, part of struct recording itself
    uint16_t column_count;
    size_t entry_bytes;
    size_t items_offset; // in struct recording: of the array's pointer, or of the single entry
    size_t count_offset; // in struct recording: of the size_t count; 0 if is_single
    size_t owner_offset; // in struct recording_owner: of the array's pointer; 0 if is_single
    const struct rec_column *columns;
    const char *name;
};

// In the order in which they lie in a file: what says most about the run comes first, so that the
// beginning of a cut file means something.
enum rec_table_index {
    REC_TABLE_META,
    REC_TABLE_TOTALS,
    REC_TABLE_COUNTERS,
    REC_TABLE_STRINGS, // its columns are not fields: see enum string_column
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
    REC_TABLE_LOOKS,
    REC_TABLE_PARTS,
    REC_TABLE_MARKS,
    REC_TABLE_UNRECORDED,
    REC_TABLE_BLOCKS,
    REC_TABLE_COUNT,
    // Only in folded files, behind the rows.
    REC_TABLE_LONES = REC_TABLE_COUNT,
    REC_TABLE_STORED_COUNT,
};

// The columns of the strings: their lengths, and their bytes one after the other without zeros.
enum string_column {
    STRING_COLUMN_LENGTHS = 1,
    STRING_COLUMN_TEXT = 2,
};

extern const struct rec_table rec_tables[REC_TABLE_STORED_COUNT];

// The log of events, whose chunks belong to no snapshot; not one of the above.
extern const struct rec_table rec_event_table;

// Whether the table is part of the history of rows.
static inline bool rec_table_is_history(enum rec_table_index index)
{
    return index >= REC_TABLE_COHORTS && index <= REC_TABLE_LIFETIME_BUCKETS;
}

// The table that is stored under that chunk type, NULL if there is none; `form` may be NULL.
const struct rec_table *rec_table_find(uint32_t chunk_type, enum rec_form *form);

// The column of that number, NULL if there is none.
const struct rec_column *rec_column_find(const struct rec_table *table, uint8_t id);

// The entries of a table that is not REC_TABLE_STRINGS, and how many there are. An array belongs to
// whoever owns it, so it may be changed through a const recording; it must not be a single's.
const void *rec_table_items(const struct rec_table *table, const struct recording *recording);
void *rec_table_array(const struct rec_table *table, const struct recording *recording);
size_t rec_table_count(const struct rec_table *table, const struct recording *recording);

// The value of a field. A signed field gives its bits.
uint64_t rec_column_get(const struct rec_column *column, const void *entry);

// The field of each of `count` entries of entry_bytes.
void rec_column_gather(const struct rec_column *column,
                       const void *entries,
                       size_t entry_bytes,
                       uint64_t *values,
                       size_t count);

// Sets the field of each of `count` entries. False, and then some may be set, if a value does not
// fit.
bool rec_column_scatter(const struct rec_column *column,
                        void *entries,
                        size_t entry_bytes,
                        const uint64_t *values,
                        size_t count);

// Sets a field; returns false, and changes nothing, if the value does not fit.
bool rec_column_set(const struct rec_column *column, void *entry, uint64_t value);
