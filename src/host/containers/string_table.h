// SPDX-License-Identifier: MIT
// string_table: stores every distinct string once and gives it a small id.
//
// Ids count from 0 without gaps, in the order of first use; id 0 is the empty string. One array
// holds all texts, each followed by a zero, so a table can be written and read back as a whole.
// Lookup is by XXH3 in an open-addressing index that grows at three quarters. All texts together
// have at most 4 GiB - 1 bytes; beyond that ERR_LIMIT. A zeroed table is valid and already holds id
// 0. Context: H; one thread at a time.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "host/containers/vec.h"

struct string_entry {
    uint32_t offset; // of the first byte in `texts`
    uint32_t hash;   // low half of XXH3, so that growing the index reads no text
};

DEFINE_VEC(string_entry_vec, struct string_entry);
DEFINE_VEC(text_vec, char);

struct string_table {
    struct text_vec texts;           // owned; texts of ids 1, 2, ..., each with its zero
    struct string_entry_vec entries; // owned; entries.items[id - 1]
    uint32_t *slots;                 // owned; open addressing: an id, or 0 for a free slot
    size_t slot_count;               // a power of two, or 0
};

void string_table_release(struct string_table *table);

// Find or add text[0..len) and return its id in *out_id. `text` may hold any bytes and may be NULL
// if len is 0; it must not point into the table itself. ERR_NO_MEMORY, or ERR_LIMIT if the table is
// full; both leave the table unchanged.
enum err
string_table_intern(struct string_table *table, const char *text, size_t len, uint32_t *out_id)
    MUST_USE;

// Find or add a zero-terminated text; NULL counts as "". Fails as string_table_intern does.
enum err string_table_intern_text(struct string_table *table, const char *text, uint32_t *out_id)
    MUST_USE;

// Find or add the part of `text` before its first zero byte, or all of it. Fails as
// string_table_intern does.
enum err string_table_intern_prefix(struct string_table *table, struct bytes text, uint32_t *out_id)
    MUST_USE;

// Find or add a text of an answer, and return its id; a failure is noted (memory_end.h), and the id
// is 0 then.
uint32_t string_table_add(struct string_table *table, const char *text);

// Find the id of a text. ERR_NOT_FOUND if the table lacks it.
enum err
string_table_find(const struct string_table *table, const char *text, size_t len, uint32_t *out_id)
    MUST_USE;

// Return the number of ids, at least 1. They are 0 to count - 1.
size_t string_table_count(const struct string_table *table);

// Return the text of `id`, zero-terminated; "" for an id that does not exist. Borrowed until the
// next intern.
const char *string_table_get(const struct string_table *table, uint32_t id);
struct bytes string_table_get_bytes(const struct string_table *table, uint32_t id);
