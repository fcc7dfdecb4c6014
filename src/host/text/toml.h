// SPDX-License-Identifier: MIT
// toml: a strict, small subset of TOML 1.0, for settings of a few lines.
//
//   # comment
//   [table]                  key = "text"      'text as it is'
//   [[array of tables]]      key = 1_000       -5    true    false
//
// Keys are bare (letters, digits, - and _). Other parts of TOML (dotted and quoted keys, arrays,
// inline tables, numbers with a fraction, dates, texts over several lines) are refused by name, so
// a file has the same meaning as for every other reader, or is an error. Duplicates are errors.
// Input is hostile: at most TOML_MAX_BYTES. Errors name the line. Context: H.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "host/containers/vec.h"
#include "host/text/strbuf.h"

enum {
    TOML_MAX_BYTES = 1 << 20
};

enum toml_type {
    TOML_TEXT,
    TOML_INTEGER,
    TOML_BOOLEAN,
};

struct toml_table {
    size_t name;   // offset in texts
    uint32_t line; // from 1; 0 for the table of entries before any table
    bool is_element;
};

struct toml_entry {
    uint32_t table; // index in tables
    uint32_t line;
    size_t key; // offset in texts
    enum toml_type type;
    size_t text; // offset in texts
    int64_t integer;
    bool boolean;
};

DEFINE_VEC(toml_table_vec, struct toml_table);
DEFINE_VEC(toml_entry_vec, struct toml_entry);

struct toml {
    struct strbuf texts;           // owned; each ended by a zero byte
    struct toml_table_vec tables;  // owned; the first holds the entries before any table
    struct toml_entry_vec entries; // owned; in order of the file
};

// Parse `input`. `name` is the file's, for errors: "cairn.toml:3: ...". ERR_INVALID,
// ERR_UNSUPPORTED, ERR_LIMIT, ERR_NO_MEMORY.
enum err toml_parse(struct bytes input, const char *name, struct toml *out, struct err_info *info)
    MUST_USE;
void toml_release(struct toml *toml);

static inline const char *toml_text(const struct toml *toml, size_t text)
{
    return strbuf_text(&toml->texts) + text;
}
