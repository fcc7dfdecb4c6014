// SPDX-License-Identifier: MIT
#include "host/containers/string_table.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "host/containers/memory_end.h"

enum {
    FIRST_SLOT_COUNT = 64
};

void string_table_release(struct string_table *table)
{
    text_vec_release(&table->texts);
    string_entry_vec_release(&table->entries);
    free(table->slots);
    *table = (struct string_table){0};
}

size_t string_table_count(const struct string_table *table)
{
    return table->entries.len + 1;
}

struct bytes string_table_get_bytes(const struct string_table *table, uint32_t id)
{
    if (id == 0 || id > table->entries.len) {
        return (struct bytes){.data = (const uint8_t *)"", .len = 0};
    }
    size_t begin = table->entries.items[id - 1].offset;
    size_t end = id < table->entries.len ? table->entries.items[id].offset : table->texts.len;
    return (struct bytes){.data = (const uint8_t *)table->texts.items + begin,
                          .len = end - begin - 1};
}

const char *string_table_get(const struct string_table *table, uint32_t id)
{
    return (const char *)string_table_get_bytes(table, id).data;
}

// Return the slot that holds the text, or the free one for it. A free slot always exists.
static size_t slot_of(const struct string_table *table, const char *text, size_t len, uint32_t hash)
{
    size_t mask = table->slot_count - 1;
    for (size_t slot = hash & mask;; slot = (slot + 1) & mask) {
        uint32_t id = table->slots[slot];
        if (id == 0) {
            return slot;
        }
        if (table->entries.items[id - 1].hash != hash) {
            continue;
        }
        struct bytes known = string_table_get_bytes(table, id);
        if (known.len == len && memcmp(known.data, text, len) == 0) {
            return slot;
        }
    }
}

// Make room for one more text: grow if three quarters of the slots are used.
static enum err grow_slots(struct string_table *table)
{
    size_t used = table->entries.len + 1;
    if (used < table->slot_count - table->slot_count / 4) {
        return ERR_OK;
    }
    size_t count = table->slot_count != 0 ? table->slot_count * 2 : FIRST_SLOT_COUNT;
    uint32_t *slots = calloc(count, sizeof(*slots));
    if (slots == NULL) {
        return ERR_NO_MEMORY;
    }
    for (size_t i = 0; i < table->entries.len; i++) {
        size_t slot = table->entries.items[i].hash & (count - 1);
        while (slots[slot] != 0) {
            slot = (slot + 1) & (count - 1);
        }
        slots[slot] = (uint32_t)(i + 1);
    }
    free(table->slots);
    table->slots = slots;
    table->slot_count = count;
    return ERR_OK;
}

enum err
string_table_find(const struct string_table *table, const char *text, size_t len, uint32_t *out_id)
{
    if (len == 0) {
        *out_id = 0;
        return ERR_OK;
    }
    if (table->slot_count == 0) {
        return ERR_NOT_FOUND;
    }
    uint32_t id = table->slots[slot_of(table, text, len, (uint32_t)XXH3_64bits(text, len))];
    if (id == 0) {
        return ERR_NOT_FOUND;
    }
    *out_id = id;
    return ERR_OK;
}

enum err
string_table_intern(struct string_table *table, const char *text, size_t len, uint32_t *out_id)
{
    if (len == 0) {
        *out_id = 0;
        return ERR_OK;
    }
    TRY(grow_slots(table));
    uint32_t hash = (uint32_t)XXH3_64bits(text, len);
    size_t slot = slot_of(table, text, len, hash);
    if (table->slots[slot] != 0) {
        *out_id = table->slots[slot];
        return ERR_OK;
    }
    if (len >= UINT32_MAX - table->texts.len) {
        return ERR_LIMIT;
    }
    TRY(text_vec_reserve(&table->texts, len + 1));
    TRY(string_entry_vec_push(
        &table->entries,
        (struct string_entry){.offset = (uint32_t)table->texts.len, .hash = hash}));
    memcpy(table->texts.items + table->texts.len, text, len);
    table->texts.items[table->texts.len + len] = 0;
    table->texts.len += len + 1;
    table->slots[slot] = (uint32_t)table->entries.len;
    *out_id = (uint32_t)table->entries.len;
    return ERR_OK;
}

enum err string_table_intern_text(struct string_table *table, const char *text, uint32_t *out_id)
{
    return string_table_intern(table, text, text != NULL ? strlen(text) : 0, out_id);
}

enum err string_table_intern_prefix(struct string_table *table, struct bytes text, uint32_t *out_id)
{
    const char *characters = (const char *)text.data;
    const size_t len = text.len > 0 ? strnlen(characters, text.len) : 0; // else it may be NULL
    return string_table_intern(table, characters, len, out_id);
}

uint32_t string_table_add(struct string_table *table, const char *text)
{
    uint32_t id = 0;
    const enum err err = string_table_intern_text(table, text, &id);
    if (err != ERR_OK) {
        memory_end_note(err);
    }
    return id;
}
