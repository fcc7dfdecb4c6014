// SPDX-License-Identifier: MIT
// table_output: prints the answer of a store as text, JSON or CSV.
//
// The names of columns say what the values are: NAME_bytes, NAME_ms and `time` (Unix time) are
// written with units in the text; CSV and JSON have plain numbers. recording_id is hexadecimal
// everywhere. The text says how many rows the limit has left out, JSON has the number; CSV is the
// rows alone. Context: H.
#pragma once

#include <stdio.h>

#include "base/err.h"
#include "store/store_table.h"

enum table_form {
    TABLE_TEXT,
    TABLE_JSON, // {"columns":[...],"rows":[{...},...],"more":0}
    TABLE_CSV,  // RFC 4180, as `cairn export --to csv`
};

// Errors: ERR_NO_MEMORY, ERR_IO. The caller checks the stream.
enum err table_write(const struct store_table *table, enum table_form form, FILE *out) MUST_USE;
