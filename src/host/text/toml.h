// SPDX-License-Identifier: MIT
// toml: a strict, small subset of TOML 1.0, for settings of a few lines.
//
//   # comment
//   [table]                  key = "text"      'text as it is'
//   [[array of tables]]      key = 1_000       -5    true    false
//
// Keys are bare (letters, digits, - and _). What else TOML knows (dotted and quoted keys, arrays,
// inline tables, numbers with a fraction, dates, texts over several lines) is refused by name, so
// that a file means here what it means to every other reader, or nothing. Duplicates are errors.
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
    size_t name;   // in texts
    uint32_t line; // from 1; 0 for the table of what stands before any
    bool is_element;
};

struct toml_entry {
    uint32_t table; // in tables
    uint32_t line;
    size_t key; // in texts
    enum toml_type type;
    size_t text; // in texts
    int64_t integer;
    bool boolean;
};

DEFINE_VEC(toml_table_vec, struct toml_table);
DEFINE_VEC(toml_entry_vec, struct toml_entry);

struct toml {
    struct strbuf texts;           // owned; each ended by a zero byte
    struct toml_table_vec tables;  // owned; the first is that of what stands before any
    struct toml_entry_vec entries; // owned; in order of the file
};

// `name` is the file's, for errors: "cairn.toml:3: ...". ERR_INVALID, ERR_UNSUPPORTED, ERR_LIMIT,
// ERR_NO_MEMORY.
enum err toml_parse(struct bytes input, const char *name, struct toml *out, struct err_info *info)
    MUST_USE;
void toml_release(struct toml *toml);

static inline const char *toml_text(const struct toml *toml, size_t text)
{
    return strbuf_text(&toml->texts) + text;
}
