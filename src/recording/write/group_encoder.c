// SPDX-License-Identifier: MIT
#include "recording/write/group_encoder.h"

#include <stdbool.h>
#include <string.h>

#include "host/text/utf8.h"
#include "recording/format/chunk.h"
#include "recording/format/column.h"
#include "recording/format/share.h"

enum {
    GROUP_TEXT_BYTES = 1 << 20, // limit for strings in a chunk, unless a single one is longer
};

void group_encoder_release(struct group_encoder *encoder)
{
    u64_vec_release(&encoder->values);
    u64_vec_release(&encoder->reference);
    u64_vec_release(&encoder->shares);
}

static void begin_table_chunk(struct strbuf *raw, uint64_t first, size_t count)
{
    uint8_t head[TABLE_HEAD_BYTES] = {0};
    put_u64(head, first);
    put_u32(head + 8, (uint32_t)count);
    strbuf_clear(raw);
    strbuf_append(raw, head, sizeof(head));
}

static void end_table_chunk(struct strbuf *raw, uint32_t columns)
{
    if (!raw->failed) {
        put_u32((uint8_t *)raw->data + 12, columns);
    }
}

// Write a column's head once its bytes, which begin at `start`, are complete.
static void put_column_head(
    struct strbuf *raw, size_t start, uint8_t id, enum column_encoding encoding, uint8_t reference)
{
    if (raw->failed) {
        return;
    }
    uint8_t *head = (uint8_t *)raw->data + start - COLUMN_HEAD_BYTES;
    head[0] = id;
    head[1] = (uint8_t)encoding;
    head[2] = encoding == COLUMN_DIFFERENCES ? reference : 0;
    put_u32(head + 4, (uint32_t)(raw->len - start));
}

static size_t begin_column(struct strbuf *raw)
{
    static const uint8_t room[COLUMN_HEAD_BYTES];
    strbuf_append(raw, room, sizeof(room));
    return raw->len;
}

static bool is_all(const struct u64_vec *values, uint64_t value)
{
    for (size_t i = 0; i < values->len; i++) {
        if (values->items[i] != value) {
            return false;
        }
    }
    return true;
}

// The state of encoding a group into `out`.
struct encoding {
    struct group_encoder *encoder;
    const struct entry_group *group;
    struct strbuf *out;
    bool is_put[UINT8_MAX + 1]; // by column id
};

// Add a column, unless every value is the default of a missing column. Return whether it was added.
static bool put_column(const struct encoding *e, const struct rec_column *column)
{
    const struct entry_group *group = e->group;
    const struct rec_table *table = group->table;
    const struct group_encoder *encoder = e->encoder;
    struct column_context context = {.first = group->first};
    rec_column_gather(column, group->entries, table->entry_bytes, encoder->values.items,
                      group->count);
    if (is_all(&encoder->values, column->missing)) {
        return false;
    }
    if (e->is_put[column->reference]) {
        rec_column_gather(rec_column_find(table, column->reference), group->entries,
                          table->entry_bytes, encoder->reference.items, group->count);
        context.reference = encoder->reference.items;
    }
    if (column->share != 0 && group->recording != NULL) {
        rec_shares(table, column, group->entries, group->count, group->recording->rows,
                   group->recording->row_count, encoder->shares.items);
        context.shares = encoder->shares.items;
    }
    const size_t start = begin_column(e->out);
    const enum column_encoding encoding =
        column_encode(encoder->values.items, context, group->count, e->out);
    put_column_head(e->out, start, column->id, encoding, column->reference);
    return true;
}

enum err
group_encode(struct group_encoder *encoder, const struct entry_group *group, struct strbuf *out)
{
    struct encoding e = {.encoder = encoder, .group = group, .out = out};
    uint32_t columns = 0;
    TRY(u64_vec_resize(&encoder->values, group->count));
    TRY(u64_vec_resize(&encoder->reference, group->count));
    TRY(u64_vec_resize(&encoder->shares, group->count));
    begin_table_chunk(out, group->first, group->count);
    for (size_t i = 0; i < group->table->column_count; i++) {
        const struct rec_column *column = &group->table->columns[i];
        e.is_put[column->id] = put_column(&e, column);
        columns += e.is_put[column->id];
    }
    end_table_chunk(out, columns);
    return strbuf_result(out);
}

// Return the number of bytes to write of a string, SIZE_MAX if it is not inside the data. A string
// that is too long is cut, at a character if it is UTF-8: one long name must not cost the file.
static size_t string_bytes(const struct rec_strings *strings, uint32_t id)
{
    uint64_t offset = strings->offsets[id];
    if (offset >= strings->data_bytes) {
        return SIZE_MAX;
    }
    const char *text = strings->data + offset;
    const char *end = memchr(text, '\0', strings->data_bytes - offset);
    return end == NULL ? SIZE_MAX : utf8_cut(text, (size_t)(end - text), GROUP_MAX_STRING_BYTES);
}

enum err group_measure_strings(struct group_encoder *encoder,
                               const struct rec_strings *strings,
                               uint32_t first,
                               size_t max,
                               size_t *out_count)
{
    size_t text_bytes = 0;
    u64_vec_clear(&encoder->values);
    *out_count = 0;
    for (uint32_t id = first; id < strings->count && *out_count < max; id++) {
        const size_t len = string_bytes(strings, id);
        if (len == SIZE_MAX) {
            return ERR_CORRUPT;
        }
        if (text_bytes + len > GROUP_TEXT_BYTES && *out_count > 0) {
            break;
        }
        text_bytes += len;
        TRY(u64_vec_push(&encoder->values, len));
        ++*out_count;
    }
    return ERR_OK;
}

void group_encode_strings(const struct group_encoder *encoder,
                          const struct rec_strings *strings,
                          uint32_t first,
                          struct strbuf *out)
{
    const struct u64_vec *lengths = &encoder->values;
    begin_table_chunk(out, first, lengths->len);
    size_t start = begin_column(out);
    const enum column_encoding encoding =
        column_encode(lengths->items, (struct column_context){.first = first}, lengths->len, out);
    put_column_head(out, start, STRING_COLUMN_LENGTHS, encoding, 0);
    start = begin_column(out);
    for (size_t i = 0; i < lengths->len; i++) {
        strbuf_append(out, strings->data + strings->offsets[first + i], lengths->items[i]);
    }
    put_column_head(out, start, STRING_COLUMN_TEXT, COLUMN_TEXT, 0);
    end_table_chunk(out, 2);
}
