// SPDX-License-Identifier: MIT
// store_table: the answer to a query: columns with names, and rows of values.
//
// A value is NULL, a whole number (STORE_UNSIGNED: one above INT64_MAX), a real number or a text.
// Texts are hostile bytes: the faces make them safe. All texts are in one buffer. An answer has at
// most STORE_ROWS_MAX rows and STORE_TEXTS_MAX bytes of text, so a query without a limit cannot
// take all memory. Context: H; one thread.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "host/text/json_writer.h"
#include "host/text/strbuf.h"

enum {
    STORE_ROWS_MAX = 1000000,
    STORE_TEXTS_MAX = 256 << 20,
    STORE_COLUMNS_MAX = 200,
};

enum store_kind {
    STORE_NULL,
    STORE_INTEGER,
    STORE_UNSIGNED, // `integer` has the bits of the uint64_t
    STORE_REAL,
    STORE_TEXT,
};

// A value to send, or one of an answer. `text` is borrowed, zero-terminated, and only for
// STORE_TEXT.
struct store_value {
    enum store_kind kind;
    int64_t integer;
    double real;
    const char *text;
};

static inline struct store_value store_integer(int64_t integer)
{
    return (struct store_value){.kind = STORE_INTEGER, .integer = integer};
}

static inline struct store_value store_text(const char *text)
{
    return (struct store_value){.kind = STORE_TEXT, .text = text};
}

struct store_cell {
    enum store_kind kind;
    union {
        int64_t integer;
        double real;
        size_t text_at; // in `texts`
    };
};

DEFINE_VEC(store_cell_vec, struct store_cell);

struct store_table {
    struct u64_vec names;        // owned; by column: offset in `texts`
    struct store_cell_vec cells; // owned; row by row
    struct strbuf texts;         // owned; each text with its zero
    uint64_t more;               // rows that the query's limit has left out
};

// Add a column. All columns precede the first value. ERR_LIMIT, ERR_NO_MEMORY.
enum err store_table_add_column(struct store_table *table, const char *name) MUST_USE;

// Add the next value of the current row. The text is copied; `len` is its length. ERR_LIMIT,
// ERR_NO_MEMORY.
enum err store_table_add(struct store_table *table, const struct store_value *value, size_t len)
    MUST_USE;

void store_table_release(struct store_table *table);

static inline size_t store_table_rows(const struct store_table *table)
{
    return table->names.len > 0 ? table->cells.len / table->names.len : 0;
}

// Remove the columns that add nothing: those about errors in which every value is 0, which are of
// exact recordings, earlier_states if no run has any, and those with the name of an earlier column.
void store_table_drop_needless(struct store_table *table);

const char *store_table_name(const struct store_table *table, size_t column);

// Return a value. Its text is borrowed until the next change of the table. `row` and `column` must
// exist.
struct store_value store_table_get(const struct store_table *table, size_t row, size_t column);

// Return the whole number of a value, 0 for any other kind.
int64_t store_table_integer(const struct store_table *table, size_t row, size_t column);

// Write the answer of a store into an open object, in one form for all faces:
//
//   "columns": ["recording_id", ...], "rows": [{"recording_id": "00...", ...}, ...], "more": 0
//
// recording_id is hexadecimal, because JSON's numbers are not exact beyond 2^53.
void store_table_write_json(const struct store_table *table, struct json_writer *w);
