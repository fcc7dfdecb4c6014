// SPDX-License-Identifier: MIT
#include "recording/read/table_reader.h"

#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "recording/format/chunk.h"
#include "recording/format/column.h"
#include "recording/format/recording_owner.h"
#include "recording/format/share.h"

enum {
    STRING_ENTRY_BYTES = 1 + sizeof(uint64_t), // its end and its offset
};

struct group {
    uint64_t first;
    uint32_t count;
    uint32_t column_count;
};

struct stored_column {
    uint8_t id;
    uint8_t encoding;
    uint8_t reference;
    struct bytes data;
};

void table_reader_release(struct table_reader *r)
{
    for (size_t i = 0; i < REC_TABLE_COUNT; i++) {
        free(r->tables[i].items);
    }
    text_vec_release(&r->texts);
    u64_vec_release(&r->string_offsets);
    u64_vec_release(&r->values);
    u64_vec_release(&r->reference);
    u64_vec_release(&r->shares);
    *r = (struct table_reader){0};
}

enum err table_reader_announce(struct table_reader *r, struct bytes payload)
{
    struct cursor c = cursor_over(payload);
    while (cursor_left(&c) > 0) {
        const struct rec_table *table = rec_table_find(cursor_u32(&c));
        (void)cursor_u32(&c); // reserved
        uint64_t entries = cursor_u64(&c);
        if (c.failed) {
            return ERR_CORRUPT;
        }
        if (table != NULL) {
            r->tables[table - rec_tables].announced = entries;
        }
    }
    r->is_announced = true;
    return ERR_OK;
}

// Add entries * entry_bytes to a sum that stays at UINT64_MAX once it is there.
static uint64_t grown_sum(uint64_t sum, uint64_t entries, uint64_t entry_bytes)
{
    uint64_t bytes;
    return __builtin_mul_overflow(entries, entry_bytes, &bytes) ||
                   __builtin_add_overflow(sum, bytes, &sum)
               ? UINT64_MAX
               : sum;
}

uint64_t table_reader_need(const struct table_reader *r)
{
    uint64_t need = 0;
    for (size_t i = 0; i < REC_TABLE_COUNT; i++) {
        const bool is_string = i == REC_TABLE_STRINGS;
        const size_t entry_bytes = is_string                 ? STRING_ENTRY_BYTES
                                   : rec_tables[i].is_single ? 0
                                                             : rec_tables[i].entry_bytes;
        need = grown_sum(need, r->tables[i].announced, entry_bytes);
    }
    return need;
}

static bool read_group(struct cursor *c, uint64_t expected_first, struct group *out)
{
    out->first = cursor_u64(c);
    out->count = cursor_u32(c);
    out->column_count = cursor_u32(c);
    return !c->failed && out->first == expected_first && out->count > 0 &&
           out->count <= GROUP_MAX_ENTRIES;
}

// Read the head of a group in a table whose entry numbers have 32 bits.
static bool read_numbered_group(struct cursor *c, size_t expected_first, struct group *out)
{
    return read_group(c, expected_first, out) && out->first + out->count <= UINT32_MAX;
}

static bool read_column(struct cursor *c, struct stored_column *out)
{
    out->id = cursor_u8(c);
    out->encoding = cursor_u8(c);
    out->reference = cursor_u8(c);
    (void)cursor_u8(c); // reserved
    out->data.len = cursor_u32(c);
    out->data.data = cursor_take(c, out->data.len);
    return !c->failed;
}

static enum err charge_budget(struct table_reader *r, uint64_t bytes)
{
    if (bytes > r->budget_bytes) {
        return ERR_LIMIT;
    }
    r->budget_bytes -= bytes;
    return ERR_OK;
}

// Decode one column into its field of `count` entries. `seen` holds the ids decoded so far.
static enum err fill_column(struct table_reader *r,
                            const struct rec_table *table,
                            const struct stored_column *stored,
                            char *entries,
                            const struct group *group,
                            bool seen[UINT8_MAX + 1])
{
    const struct rec_column *column = rec_column_find(table, stored->id);
    if (column == NULL) {
        return ERR_OK; // a column of a later minor version
    }
    const struct rec_column *reference =
        seen[stored->reference] ? rec_column_find(table, stored->reference) : NULL;
    if (reference != NULL) {
        rec_column_gather(reference, entries, table->entry_bytes, r->reference.items, group->count);
    }
    struct column_context context = {.reference = reference != NULL ? r->reference.items : NULL,
                                     .first = group->first};
    if (stored->encoding == COLUMN_SHARES && column->share != 0) {
        rec_shares(table, column, entries, group->count, r->tables[REC_TABLE_ROWS].items,
                   r->tables[REC_TABLE_ROWS].count, r->shares.items);
        context.shares = r->shares.items;
    }
    if (!column_decode(stored->data, stored->encoding, context, group->count, r->values.items)) {
        return ERR_CORRUPT;
    }
    if (!rec_column_scatter(column, entries, table->entry_bytes, r->values.items, group->count)) {
        return ERR_CORRUPT;
    }
    seen[column->id] = true;
    return ERR_OK;
}

// Decode a group into `count` allocated entries.
static enum err fill_group(struct table_reader *r,
                           const struct rec_table *table,
                           struct cursor *c,
                           const struct group *group,
                           char *entries)
{
    bool seen[UINT8_MAX + 1] = {false};
    TRY(u64_vec_resize(&r->values, group->count));
    TRY(u64_vec_resize(&r->reference, group->count));
    TRY(u64_vec_resize(&r->shares, group->count));
    for (size_t i = 0; i < table->column_count; i++) {
        const struct rec_column *column = &table->columns[i];
        for (size_t j = 0; j < group->count && column->missing != 0; j++) {
            r->values.items[j] = column->missing;
        }
        if (column->missing != 0) {
            (void)rec_column_scatter(column, entries, table->entry_bytes, r->values.items,
                                     group->count); // they fit
        }
    }
    for (uint32_t i = 0; i < group->column_count; i++) {
        struct stored_column stored;
        if (!read_column(c, &stored)) {
            return ERR_CORRUPT;
        }
        TRY(fill_column(r, table, &stored, entries, group, seen));
    }
    return cursor_left(c) == 0 ? ERR_OK : ERR_CORRUPT;
}

static enum err add_single(struct table_reader *r, enum rec_table_index index, struct cursor *c)
{
    struct group group;
    struct recording filled = r->recording;
    if (r->tables[index].is_there || !read_numbered_group(c, 0, &group) || group.count != 1) {
        return ERR_CORRUPT;
    }
    TRY(fill_group(r, &rec_tables[index], c, &group, (char *)&filled));
    r->recording = filled;
    r->tables[index].count = 1;
    return ERR_OK;
}

static enum err add_entries(struct table_reader *r, enum rec_table_index index, struct cursor *c)
{
    const struct rec_table *table = &rec_tables[index];
    size_t before = r->tables[index].count;
    struct group group;
    if (!read_numbered_group(c, before + r->tables[index].merged, &group)) {
        return ERR_CORRUPT;
    }
    TRY(charge_budget(r, (uint64_t)group.count * table->entry_bytes));
    if (r->tables[index].cap - before < group.count) {
        void *grown = vec_grown(r->tables[index].items, &r->tables[index].cap, before, group.count,
                                table->entry_bytes);
        if (grown == NULL) {
            return ERR_NO_MEMORY;
        }
        r->tables[index].items = grown;
    }
    char *entries = (char *)r->tables[index].items + before * table->entry_bytes;
    memset(entries, 0, group.count * table->entry_bytes);
    TRY(fill_group(r, table, c, &group, entries));
    r->tables[index].count += group.count;
    return ERR_OK;
}

enum err table_reader_merge_threads(struct table_reader *r, struct row_merger *merger, size_t from)
{
    const size_t count = r->tables[REC_TABLE_ROWS].count;
    size_t left;
    merger->threads = r->tables[REC_TABLE_THREADS].items;
    merger->thread_count = r->tables[REC_TABLE_THREADS].count;
    merger->process_count = r->tables[REC_TABLE_PROCESSES].count;
    TRY(row_merger_add(merger, r->tables[REC_TABLE_ROWS].items, from, count, &left));
    r->tables[REC_TABLE_ROWS].count = left;
    r->tables[REC_TABLE_ROWS].merged += count - left;
    r->budget_bytes += (count - left) * rec_tables[REC_TABLE_ROWS].entry_bytes;
    return ERR_OK;
}

// Read the two columns of a chunk of strings: the lengths, and the concatenated bytes.
static enum err read_strings(struct table_reader *r,
                             struct cursor *c,
                             const struct group *group,
                             struct bytes *text)
{
    bool has_lengths = false;
    bool has_text = false;
    TRY(u64_vec_resize(&r->values, group->count));
    for (uint32_t i = 0; i < group->column_count; i++) {
        struct stored_column stored;
        if (!read_column(c, &stored)) {
            return ERR_CORRUPT;
        }
        if (stored.id == STRING_COLUMN_LENGTHS) {
            has_lengths = column_decode(stored.data, stored.encoding,
                                        (struct column_context){.first = group->first},
                                        group->count, r->values.items);
        } else if (stored.id == STRING_COLUMN_TEXT && stored.encoding == COLUMN_TEXT) {
            *text = stored.data;
            has_text = true;
        }
    }
    return has_lengths && has_text && cursor_left(c) == 0 ? ERR_OK : ERR_CORRUPT;
}

static enum err add_strings(struct table_reader *r, struct cursor *c)
{
    struct group group;
    struct bytes text = {0};
    if (!read_numbered_group(c, r->string_offsets.len, &group)) {
        return ERR_CORRUPT;
    }
    TRY(read_strings(r, c, &group, &text));
    uint64_t left = text.len;
    for (size_t i = 0; i < group.count; i++) {
        if (r->values.items[i] > left) {
            return ERR_CORRUPT;
        }
        left -= r->values.items[i];
    }
    // String 0 must be empty: all code relies on it.
    if (left != 0 || (group.first == 0 && r->values.items[0] != 0)) {
        return ERR_CORRUPT;
    }
    TRY(charge_budget(r, text.len + (uint64_t)group.count * STRING_ENTRY_BYTES));
    TRY(text_vec_reserve(&r->texts, text.len + group.count));
    TRY(u64_vec_reserve(&r->string_offsets, group.count));
    const uint8_t *at = text.data;
    for (size_t i = 0; i < group.count; i++) {
        size_t len = (size_t)r->values.items[i];
        r->string_offsets.items[r->string_offsets.len++] = r->texts.len;
        memcpy(r->texts.items + r->texts.len, at, len);
        r->texts.len += len;
        r->texts.items[r->texts.len++] = '\0';
        at += len;
    }
    r->tables[REC_TABLE_STRINGS].count += group.count;
    return ERR_OK;
}

enum err table_reader_add(struct table_reader *r, enum rec_table_index index, struct bytes payload)
{
    struct cursor c = cursor_over(payload);
    if (index == REC_TABLE_STRINGS) {
        TRY(add_strings(r, &c));
    } else if (rec_tables[index].is_single) {
        TRY(add_single(r, index, &c));
    } else {
        TRY(add_entries(r, index, &c));
    }
    r->tables[index].is_there = true;
    return ERR_OK;
}

void table_reader_drop_history(struct table_reader *r)
{
    for (size_t i = REC_TABLE_COHORTS; i <= REC_TABLE_LIFETIME_BUCKETS; i++) {
        free(r->tables[i].items);
        r->tables[i].items = NULL;
        r->tables[i].count = 0;
        r->tables[i].cap = 0;
    }
}

// Add the empty string, which every recording has, even if its strings are lost.
static enum err ensure_empty_string(struct table_reader *r)
{
    if (r->string_offsets.len > 0) {
        return ERR_OK;
    }
    TRY(text_vec_push(&r->texts, '\0'));
    return u64_vec_push(&r->string_offsets, 0);
}

enum err table_reader_finish(struct table_reader *r, struct recording *out)
{
    TRY(ensure_empty_string(r));
    struct recording_owner *owner = recording_owner_new();
    if (owner == NULL) {
        return ERR_NO_MEMORY;
    }
    struct recording made = r->recording;
    made.owner = owner;
    for (size_t i = 0; i < REC_TABLE_COUNT; i++) {
        const struct rec_table *table = &rec_tables[i];
        if (table->columns == NULL || table->is_single) {
            continue;
        }
        // The fields are pointers of different types, so their bytes are copied, not aliased.
        memcpy((char *)&made + table->items_offset, &r->tables[i].items, sizeof(void *));
        memcpy((char *)&made + table->count_offset, &r->tables[i].count, sizeof(size_t));
        memcpy((char *)owner + table->owner_offset, &r->tables[i].items, sizeof(void *));
        r->tables[i].items = NULL;
    }
    owner->string_data = r->texts.items;
    owner->string_offsets = r->string_offsets.items;
    made.strings = (struct rec_strings){.data = owner->string_data,
                                        .offsets = owner->string_offsets,
                                        .count = (uint32_t)r->string_offsets.len,
                                        .data_bytes = r->texts.len};
    r->texts = (struct text_vec){0};
    r->string_offsets = (struct u64_vec){0};
    *out = made;
    return ERR_OK;
}
