// SPDX-License-Identifier: MIT
// recording_writer: see recording_writer.h.
//
// A chunk is put together in memory (raw), packed (chunk_packer), written with one pwrite loop at
// `end`, and counted only when it is whole. Strings are not fields of structs, so they have their
// own chunk maker; every other table goes through its description in schema.c.
#include "recording/recording_writer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/file.h"
#include "recording/column.h"
#include "recording/schema.h"
#include "recording/share.h"

enum {
    DEFAULT_LEVEL = 6,
    GROUP_TEXT_BYTES = 1 << 20, // of strings in a chunk, if a single one is not longer
    MAX_STRING_BYTES = 8 << 20, // so that a chunk of one string is within CHUNK_MAX_RAW_BYTES
};

static enum err
write_at(struct recording_writer *w, const uint8_t *data, size_t len, struct err_info *info)
{
    for (size_t done = 0; done < len;) {
        ssize_t wrote = pwrite(w->fd, data + done, len - done, (off_t)(w->end + done));
        if (wrote < 0 && errno == EINTR) {
            continue;
        }
        if (wrote <= 0) {
            enum err err =
                err_set_errno(info, wrote < 0 ? errno : ENOSPC, "cannot write '%s'", w->path);
            (void)ftruncate(w->fd, (off_t)w->end); // a reader would step over the rest anyway
            return err;
        }
        done += (size_t)wrote;
    }
    w->end += len;
    return ERR_OK;
}

// Writes the oldest chunk that is being packed.
static enum err write_oldest(struct recording_writer *w, struct err_info *info)
{
    const struct packed_chunk *chunk = chunk_packer_oldest(&w->packer);
    enum err err = chunk->info.code;
    if (err != ERR_OK) {
        if (info != NULL) {
            *info = chunk->info;
        }
    } else if (chunk_vec_reserve(&w->contents, 1) != ERR_OK) {
        err = err_set(info, ERR_NO_MEMORY, "no memory for the table of contents");
    } else {
        const struct chunk_place place = {.offset = w->end, .head = chunk->head};
        err = write_at(w, (const uint8_t *)chunk->stored.data, chunk->stored.len, info);
        if (err == ERR_OK) {
            w->contents.items[w->contents.len++] = place;
        }
    }
    chunk_packer_done(&w->packer);
    return err;
}

static enum err write_packed(struct recording_writer *w, struct err_info *info)
{
    while (w->packer.count > 0) {
        TRY(write_oldest(w, info));
    }
    return ERR_OK;
}

static void drop_packed(struct recording_writer *w)
{
    while (chunk_packer_oldest(&w->packer) != NULL) {
        chunk_packer_done(&w->packer);
    }
}

// Takes w->raw as the payload of the next chunk; it will be packed, and written by and by. Leaves
// some other buffer there.
static enum err put_chunk(struct recording_writer *w,
                          uint32_t type,
                          uint32_t generation,
                          uint32_t part,
                          struct err_info *info)
{
    if (strbuf_result(&w->raw) != ERR_OK) {
        return err_set(info, ERR_NO_MEMORY, "no memory for a chunk");
    }
    if (chunk_packer_is_full(&w->packer)) {
        TRY(write_oldest(w, info));
    }
    struct packed_chunk *chunk = chunk_packer_begin(&w->packer);
    const struct strbuf empty = chunk->raw;
    chunk->raw = w->raw;
    w->raw = empty;
    chunk->head = (struct chunk_head){.type = type, .generation = generation, .part = part};
    chunk_packer_submit(&w->packer);
    return w->packer.worker_count > 0 ? ERR_OK : write_packed(w, info);
}

// Writes w->raw as the next chunk of the snapshot.
static enum err put_part(struct recording_writer *w, uint32_t type, struct err_info *info)
{
    TRY(put_chunk(w, type, w->generation, w->part, info));
    w->part++;
    return ERR_OK;
}

static enum err report_progress(struct recording_writer *w, uint64_t entries, struct err_info *info)
{
    w->entries_done += entries;
    if (w->options.progress != NULL &&
        !w->options.progress(w->options.progress_context, w->entries_done, w->entries_total)) {
        return err_set(info, ERR_CANCELLED, "writing '%s' was cancelled", w->path);
    }
    return ERR_OK;
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

// A column's head is written when its bytes, which begin at `start`, are all there.
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
    head[3] = 0;
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

// Adds a column of the group to w->raw, unless every value is what a reader takes a missing column
// for. Returns whether it was added.
static bool put_column(struct recording_writer *w,
                       const struct rec_table *table,
                       const struct rec_column *column,
                       const char *entries,
                       uint64_t first,
                       const bool is_put[UINT8_MAX + 1])
{
    struct column_context context = {.first = first};
    rec_column_gather(column, entries, table->entry_bytes, w->values.items, w->values.len);
    if (is_all(&w->values, column->missing)) {
        return false;
    }
    if (is_put[column->reference]) {
        rec_column_gather(rec_column_find(table, column->reference), entries, table->entry_bytes,
                          w->reference.items, w->reference.len);
        context.reference = w->reference.items;
    }
    if (column->share != 0 && w->fold.recording != NULL) {
        rec_shares(table, column, entries, w->values.len, w->fold.recording->rows,
                   w->fold.recording->row_count, w->shares.items);
        context.shares = w->shares.items;
    }
    size_t start = begin_column(&w->raw);
    enum column_encoding encoding = column_encode(w->values.items, context, w->values.len, &w->raw);
    put_column_head(&w->raw, start, column->id, encoding, column->reference);
    return true;
}

// Makes a chunk of the `count` entries of the table from number `first`, which begin at `entries`,
// in w->raw.
static enum err make_group(struct recording_writer *w,
                           const struct rec_table *table,
                           const char *entries,
                           uint64_t first,
                           size_t count,
                           struct err_info *info)
{
    bool is_put[UINT8_MAX + 1] = {false};
    uint32_t columns = 0;
    if (u64_vec_resize(&w->values, count) != ERR_OK ||
        u64_vec_resize(&w->reference, count) != ERR_OK ||
        u64_vec_resize(&w->shares, count) != ERR_OK) {
        return err_set(info, ERR_NO_MEMORY, "no memory for a group of %zu entries", count);
    }
    begin_table_chunk(&w->raw, first, count);
    for (size_t i = 0; i < table->column_count; i++) {
        const struct rec_column *column = &table->columns[i];
        is_put[column->id] = put_column(w, table, column, entries, first, is_put);
        columns += is_put[column->id];
    }
    end_table_chunk(&w->raw, columns);
    return ERR_OK;
}

// Writes that chunk as the next part of the snapshot.
static enum err put_group(struct recording_writer *w,
                          const struct rec_table *table,
                          enum rec_form form,
                          const char *entries,
                          size_t first,
                          size_t count,
                          struct err_info *info)
{
    TRY(make_group(w, table, entries, first, count, info));
    TRY(put_part(w, rec_table_type(table, form), info));
    return report_progress(w, count, info);
}

static size_t group_count(const struct recording_writer *w)
{
    uint32_t asked = w->options.group_count;
    return asked == 0 || asked > GROUP_MAX_ENTRIES ? GROUP_MAX_ENTRIES : asked;
}

// The length of a string, or SIZE_MAX if it is not inside the data.
static size_t string_bytes(const struct rec_strings *strings, uint32_t id)
{
    uint64_t offset = strings->offsets[id];
    if (offset >= strings->data_bytes) {
        return SIZE_MAX;
    }
    const char *text = strings->data + offset;
    const char *end = memchr(text, '\0', strings->data_bytes - offset);
    return end == NULL ? SIZE_MAX : (size_t)(end - text);
}

// Measures the strings from `first` that make one chunk: their lengths go to w->values.
static enum err measure_strings(struct recording_writer *w,
                                const struct rec_strings *strings,
                                uint32_t first,
                                struct err_info *info)
{
    u64_vec_clear(&w->values);
    size_t text_bytes = 0;
    for (uint32_t id = first; id < strings->count && w->values.len < group_count(w); id++) {
        size_t len = string_bytes(strings, id);
        if (len > MAX_STRING_BYTES) {
            return err_set(info, ERR_LIMIT, "string %u is not terminated or longer than %d bytes",
                           (unsigned)id, MAX_STRING_BYTES);
        }
        if (text_bytes + len > GROUP_TEXT_BYTES && w->values.len > 0) {
            break;
        }
        text_bytes += len;
        if (u64_vec_push(&w->values, len) != ERR_OK) {
            return err_set(info, ERR_NO_MEMORY, "no memory for the strings");
        }
    }
    return ERR_OK;
}

static enum err
put_strings(struct recording_writer *w, const struct rec_strings *strings, struct err_info *info)
{
    for (uint32_t first = 0; first < strings->count;) {
        TRY(measure_strings(w, strings, first, info));
        size_t count = w->values.len;
        begin_table_chunk(&w->raw, first, count);
        size_t start = begin_column(&w->raw);
        enum column_encoding encoding =
            column_encode(w->values.items, (struct column_context){.first = first}, count, &w->raw);
        put_column_head(&w->raw, start, STRING_COLUMN_LENGTHS, encoding, 0);
        start = begin_column(&w->raw);
        for (size_t i = 0; i < count; i++) {
            strbuf_append(&w->raw, strings->data + strings->offsets[first + i], w->values.items[i]);
        }
        put_column_head(&w->raw, start, STRING_COLUMN_TEXT, COLUMN_TEXT, 0);
        end_table_chunk(&w->raw, 2);
        TRY(put_part(w, CHUNK_STRINGS, info));
        TRY(report_progress(w, count, info));
        first += (uint32_t)count;
    }
    return ERR_OK;
}

static uint64_t entries_of(const struct recording_writer *w,
                           enum rec_table_index index,
                           const struct recording *recording)
{
    if (index == REC_TABLE_STRINGS) {
        return recording->strings.count;
    }
    if (index == REC_TABLE_LONES) {
        return w->fold.lones.len;
    }
    return is_history_table(index) ? w->fold.counts[index]
                                   : rec_table_count(&rec_tables[index], recording);
}

// The next `count` entries of a table, from number `first`; NULL if there is no memory for them.
static const char *entries_from(struct recording_writer *w,
                                enum rec_table_index index,
                                const struct recording *recording,
                                size_t first,
                                size_t count)
{
    const struct rec_table *table = &rec_tables[index];
    if (is_history_table(index)) {
        strbuf_clear(&w->folded);
        return strbuf_reserve(&w->folded, count * table->entry_bytes) &&
                       history_fold_next(&w->fold, w->folded.data, count) == ERR_OK
                   ? w->folded.data
                   : NULL;
    }
    const char *items = index == REC_TABLE_LONES ? (const char *)w->fold.lones.items
                                                 : rec_table_items(table, recording);
    return items + first * table->entry_bytes;
}

static enum err put_table(struct recording_writer *w,
                          enum rec_table_index index,
                          const struct recording *recording,
                          struct err_info *info)
{
    if (index == REC_TABLE_STRINGS) {
        return put_strings(w, &recording->strings, info);
    }
    const struct rec_table *table = &rec_tables[index];
    const uint64_t total = entries_of(w, index, recording);
    if (total > UINT32_MAX) {
        return err_set(info, ERR_LIMIT, "too many %s: %" PRIu64, table->name, total);
    }
    if (is_history_table(index) && history_fold_open(&w->fold, index) != ERR_OK) {
        return err_set(info, ERR_NO_MEMORY, "no memory for %" PRIu64 " %s", total, table->name);
    }
    for (size_t first = 0; first < total;) {
        size_t left = total - first;
        size_t count = left < group_count(w) ? left : group_count(w);
        const char *entries = entries_from(w, index, recording, first, count);
        if (entries == NULL) {
            return err_set(info, ERR_NO_MEMORY, "no memory for %zu %s", count, table->name);
        }
        TRY(put_group(w, table, history_fold_form(&w->fold, index), entries, first, count, info));
        first += count;
    }
    return ERR_OK;
}

static void announce(struct recording_writer *w, uint32_t chunk_type, uint64_t entries)
{
    uint8_t bytes[ANNOUNCEMENT_BYTES];
    put_u32(bytes, chunk_type);
    put_u32(bytes + 4, 0);
    put_u64(bytes + 8, entries);
    strbuf_append(&w->raw, bytes, sizeof(bytes));
}

// The first chunk of a snapshot says how many entries each table is going to have.
static enum err
put_begin(struct recording_writer *w, const struct recording *recording, struct err_info *info)
{
    strbuf_clear(&w->raw);
    w->entries_done = 0;
    w->entries_total = 0;
    for (size_t i = 0; i < REC_TABLE_STORED_COUNT; i++) {
        const enum rec_table_index index = (enum rec_table_index)i;
        const uint64_t entries = entries_of(w, index, recording);
        w->entries_total += entries;
        if (entries > 0) {
            announce(w, rec_table_type(&rec_tables[i], history_fold_form(&w->fold, index)),
                     entries);
        }
    }
    return put_part(w, CHUNK_SNAPSHOT_BEGIN, info);
}

// The last one: it counts the parts before it, and says where the first of them lies.
static enum err put_end(struct recording_writer *w, uint64_t begin_offset, struct err_info *info)
{
    uint8_t bytes[16];
    put_u64(bytes, begin_offset);
    put_u32(bytes + 8, w->part);
    put_u32(bytes + 12, w->generation);
    strbuf_clear(&w->raw);
    strbuf_append(&w->raw, bytes, sizeof(bytes));
    TRY(put_part(w, CHUNK_SNAPSHOT_END, info));
    return write_packed(w, info);
}

static enum err
put_snapshot(struct recording_writer *w, const struct recording *recording, struct err_info *info)
{
    uint64_t begin_offset = w->end;
    TRY(put_begin(w, recording, info));
    for (size_t i = 0; i < REC_TABLE_COUNT; i++) {
        TRY(put_table(w, (enum rec_table_index)i, recording, info));
        if (i == REC_TABLE_ROWS) {
            TRY(put_table(w, REC_TABLE_LONES, recording, info));
        }
    }
    return put_end(w, begin_offset, info);
}

enum err recording_writer_snapshot(struct recording_writer *w,
                                   const struct recording *recording,
                                   struct err_info *info)
{
    uint64_t end_before = w->end;
    size_t contents_before = w->contents.len;
    w->generation++;
    w->part = 0;
    enum err err = history_fold_begin(&w->fold, recording, w->options.supply);
    err = err == ERR_OK
              ? put_snapshot(w, recording, info)
              : err_set(info, err, "no memory for the history of %zu rows", recording->row_count);
    history_fold_release(&w->fold);
    w->fold = (struct history_fold){0};
    drop_packed(w); // of a snapshot that failed
    if (err != ERR_OK && ftruncate(w->fd, (off_t)end_before) == 0) {
        w->end = end_before;
        w->contents.len = contents_before;
    }
    return err;
}

enum err recording_writer_group(struct recording_writer *w,
                                const struct rec_table *table,
                                const void *entries,
                                uint64_t first,
                                size_t count,
                                struct err_info *info)
{
    TRY(make_group(w, table, entries, first, count, info));
    TRY(put_chunk(w, table->chunk_type, 0, 0, info));
    return write_packed(w, info);
}

enum err recording_writer_chunk(struct recording_writer *w,
                                uint32_t type,
                                struct bytes payload,
                                struct err_info *info)
{
    strbuf_clear(&w->raw);
    strbuf_append(&w->raw, payload.data, payload.len);
    TRY(put_chunk(w, type, 0, 0, info));
    return write_packed(w, info);
}

enum err recording_writer_finish(struct recording_writer *w, struct err_info *info)
{
    strbuf_clear(&w->raw);
    for (size_t i = 0; i < w->contents.len; i++) {
        uint8_t bytes[CONTENTS_ENTRY_BYTES];
        contents_entry_put(&w->contents.items[i], bytes);
        strbuf_append(&w->raw, bytes, sizeof(bytes));
    }
    struct file_footer footer = {.contents_offset = w->end};
    TRY(put_chunk(w, CHUNK_CONTENTS, 0, 0, info));
    TRY(write_packed(w, info));
    footer.file_bytes = w->end + FILE_FOOTER_BYTES;
    uint8_t bytes[FILE_FOOTER_BYTES];
    file_footer_put(&footer, bytes);
    return write_at(w, bytes, sizeof(bytes), info);
}

enum err recording_writer_init(struct recording_writer *w,
                               int fd,
                               const char *path,
                               const struct recording_write_options *options,
                               struct err_info *info)
{
    static const struct recording_write_options defaults;
    *w = (struct recording_writer){
        .fd = fd, .path = path, .options = options != NULL ? *options : defaults};
    w->generation = w->options.generation > 0 ? w->options.generation - 1 : 0;
    const int level = w->options.level != 0 ? w->options.level : DEFAULT_LEVEL;
    enum err err =
        chunk_packer_init(&w->packer, level, w->options.is_plain, w->options.packing_threads);
    if (err != ERR_OK) {
        err = err_set(info, err, "no memory for zstd");
    } else {
        uint8_t header[FILE_HEADER_BYTES];
        file_header_put(header);
        err = write_at(w, header, sizeof(header), info);
    }
    if (err != ERR_OK) {
        recording_writer_release(w);
    }
    return err;
}

void recording_writer_release(struct recording_writer *w)
{
    chunk_vec_release(&w->contents);
    strbuf_release(&w->raw);
    u64_vec_release(&w->values);
    u64_vec_release(&w->reference);
    u64_vec_release(&w->shares);
    strbuf_release(&w->folded);
    history_fold_release(&w->fold);
    chunk_packer_release(&w->packer);
    *w = (struct recording_writer){0};
}

enum err recording_write(const struct recording *recording,
                         const char *path,
                         const struct recording_write_options *options,
                         struct err_info *info)
{
    CLEANUP(replacement_abandon) struct replacement file = {0};
    CLEANUP(recording_writer_release) struct recording_writer w = {0};
    TRY(replacement_begin(&file, path, info));
    TRY(recording_writer_init(&w, fileno(file.stream), path, options, info));
    TRY(recording_writer_snapshot(&w, recording, info));
    TRY(recording_writer_finish(&w, info));
    return replacement_commit(&file, options != NULL && options->is_durable, info);
}
