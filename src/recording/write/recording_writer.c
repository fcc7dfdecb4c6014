// SPDX-License-Identifier: MIT
// recording_writer: see recording_writer.h.
//
// A chunk begins as a payload in memory (raw). A loop of pwrite writes the packed chunk (stored) at
// `end`, and it counts only when it is complete.
#include "recording/write/recording_writer.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "base/compiler.h"
#include "host/os/file.h"
#include "host/os/new_file.h"
#include "recording/format/chunk_index.h"
#include "recording/format/recording_file.h"
#include "recording/format/schema.h"

enum {
    DEFAULT_LEVEL = 4, // one more costs a third more time, for 2 % of the bytes
    COPY_BYTES = 16384,
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
            (void)!ftruncate(w->fd, (off_t)w->end); // a reader skips the rest anyway
            return err;
        }
        done += (size_t)wrote;
    }
    w->end += len;
    return ERR_OK;
}

// Make head and payload as they are stored: the payload compressed if that is smaller.
static enum err
pack_payload(struct recording_writer *w, struct chunk_head *head, struct err_info *info)
{
    const struct bytes raw = strbuf_bytes(&w->raw);
    const size_t bound = ZSTD_compressBound(raw.len);
    strbuf_clear(&w->stored);
    if (strbuf_result(&w->raw) != ERR_OK || !strbuf_reserve(&w->stored, CHUNK_HEAD_BYTES + bound)) {
        return err_set(info, ERR_NO_MEMORY, "no memory for a chunk of %zu bytes", raw.len);
    }
    uint8_t *payload = (uint8_t *)w->stored.data + CHUNK_HEAD_BYTES;
    size_t packed = raw.len;
    if (w->zstd != NULL) {
        packed = ZSTD_compress2(w->zstd, payload, bound, raw.data, raw.len);
        if (ZSTD_isError(packed)) {
            return err_set(info, ERR_NO_MEMORY, "cannot compress: %s", ZSTD_getErrorName(packed));
        }
    }
    const bool is_packed = packed < raw.len;
    if (!is_packed && raw.len > 0) {
        memcpy(payload, raw.data, raw.len);
    }
    head->flags = is_packed ? CHUNK_ZSTD : 0;
    head->raw_bytes = raw.len;
    head->stored_bytes = is_packed ? packed : raw.len;
    head->payload_hash = chunk_hash(payload, head->stored_bytes);
    chunk_head_put(head, (uint8_t *)w->stored.data);
    w->stored.len = CHUNK_HEAD_BYTES + head->stored_bytes;
    return ERR_OK;
}

// Write w->raw as the payload of the next chunk.
static enum err put_chunk(struct recording_writer *w, struct chunk_head head, struct err_info *info)
{
    TRY(pack_payload(w, &head, info));
    const struct chunk_place place = {.offset = w->end, .head = head};
    if (chunk_vec_reserve(&w->contents, 1) != ERR_OK) {
        return err_set(info, ERR_NO_MEMORY, "no memory for the table of contents");
    }
    TRY(write_at(w, (const uint8_t *)w->stored.data, w->stored.len, info));
    w->contents.items[w->contents.len++] = place;
    return ERR_OK;
}

// Write the group as the next chunk.
static enum err put_group(struct recording_writer *w,
                          struct chunk_head head,
                          const struct entry_group *group,
                          struct err_info *info)
{
    if (group_encode(&w->encoder, group, &w->raw) != ERR_OK) {
        return err_set(info, ERR_NO_MEMORY, "no memory for a group of %zu entries", group->count);
    }
    return put_chunk(w, head, info);
}

// Return the head of the snapshot's next chunk.
static struct chunk_head next_part(struct recording_writer *w, uint32_t type)
{
    return (struct chunk_head){.type = type, .generation = w->generation, .part = w->part++};
}

// Write w->raw as the next chunk of the snapshot.
static enum err put_part(struct recording_writer *w, uint32_t type, struct err_info *info)
{
    return put_chunk(w, next_part(w, type), info);
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

static size_t group_count(const struct recording_writer *w)
{
    uint32_t asked = w->options.group_count;
    return asked == 0 || asked > GROUP_MAX_ENTRIES ? GROUP_MAX_ENTRIES : asked;
}

static enum err
put_strings(struct recording_writer *w, const struct rec_strings *strings, struct err_info *info)
{
    size_t count = 0;
    for (uint32_t first = 0; first < strings->count; first += (uint32_t)count) {
        const enum err err =
            group_measure_strings(&w->encoder, strings, first, group_count(w), &count);
        if (err == ERR_CORRUPT) {
            return err_set(info, err, "string %zu is not terminated", first + count);
        }
        if (err != ERR_OK) {
            return err_set(info, err, "no memory for the strings");
        }
        group_encode_strings(&w->encoder, strings, first, &w->raw);
        TRY(put_part(w, CHUNK_STRINGS, info));
        TRY(report_progress(w, count, info));
    }
    return ERR_OK;
}

// Return the number of entries of the table that the supply makes.
static size_t supplied_count(const struct recording_writer *w, enum rec_table_index index)
{
    const struct table_supply *supply = w->options.supply;
    return supply != NULL ? supply->count(supply->context, index) : 0;
}

static uint64_t entries_of(const struct recording_writer *w,
                           enum rec_table_index index,
                           const struct recording *recording)
{
    if (index == REC_TABLE_STRINGS) {
        return recording->strings.count;
    }
    const size_t supplied = supplied_count(w, index);
    return supplied > 0 ? supplied : rec_table_count(&rec_tables[index], recording);
}

// Return `count` entries of a table from number `first` on, NULL if memory is short.
static const char *entries_from(struct recording_writer *w,
                                enum rec_table_index index,
                                const struct recording *recording,
                                size_t first,
                                size_t count)
{
    const struct rec_table *table = &rec_tables[index];
    const struct table_supply *supply = w->options.supply;
    if (supplied_count(w, index) == 0) {
        return (const char *)rec_table_items(table, recording) + first * table->entry_bytes;
    }
    if (first == 0) {
        supply->begin(supply->context, index);
    }
    strbuf_clear(&w->supplied);
    return strbuf_reserve(&w->supplied, count * table->entry_bytes) &&
                   supply->next(supply->context, index, w->supplied.data, count) == ERR_OK
               ? w->supplied.data
               : NULL;
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
    for (size_t first = 0; first < total;) {
        size_t left = total - first;
        size_t count = left < group_count(w) ? left : group_count(w);
        const struct entry_group group = {.table = table,
                                          .recording = recording,
                                          .entries =
                                              entries_from(w, index, recording, first, count),
                                          .first = first,
                                          .count = count};
        if (group.entries == NULL) {
            return err_set(info, ERR_NO_MEMORY, "no memory for %zu %s", count, table->name);
        }
        TRY(put_group(w, next_part(w, table->chunk_type), &group, info));
        TRY(report_progress(w, count, info));
        first += count;
    }
    return ERR_OK;
}

static void append_announcement(struct strbuf *out, uint32_t chunk_type, uint64_t entries)
{
    uint8_t bytes[ANNOUNCEMENT_BYTES];
    put_u32(bytes, chunk_type);
    put_u32(bytes + 4, 0);
    put_u64(bytes + 8, entries);
    strbuf_append(out, bytes, sizeof(bytes));
}

// Write the first chunk of a snapshot, which announces the number of entries of each table.
static enum err
put_begin(struct recording_writer *w, const struct recording *recording, struct err_info *info)
{
    w->entries_total = 0;
    strbuf_clear(&w->raw);
    for (size_t i = 0; i < REC_TABLE_COUNT; i++) {
        const uint64_t entries = entries_of(w, (enum rec_table_index)i, recording);
        w->entries_total += entries;
        if (entries > 0) {
            append_announcement(&w->raw, rec_tables[i].chunk_type, entries);
        }
    }
    return put_part(w, CHUNK_SNAPSHOT_BEGIN, info);
}

// Write the last chunk: the number of parts before it, and the offset of the first one.
static enum err put_end(struct recording_writer *w, uint64_t begin_offset, struct err_info *info)
{
    uint8_t bytes[16];
    put_u64(bytes, begin_offset);
    put_u32(bytes + 8, w->part);
    put_u32(bytes + 12, w->generation);
    strbuf_clear(&w->raw);
    strbuf_append(&w->raw, bytes, sizeof(bytes));
    return put_part(w, CHUNK_SNAPSHOT_END, info);
}

static enum err
put_snapshot(struct recording_writer *w, const struct recording *recording, struct err_info *info)
{
    uint64_t begin_offset = w->end;
    TRY(put_begin(w, recording, info));
    for (size_t i = 0; i < REC_TABLE_COUNT; i++) {
        TRY(put_table(w, (enum rec_table_index)i, recording, info));
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
    w->entries_done = 0;
    const enum err err = put_snapshot(w, recording, info);
    if (err != ERR_OK && ftruncate(w->fd, (off_t)end_before) == 0) {
        w->end = end_before;
        w->contents.len = contents_before;
    }
    return err;
}

enum err recording_writer_copy(struct recording_writer *w,
                               const struct chunk_source *source,
                               const struct chunk_place *place,
                               struct err_info *info)
{
    uint8_t piece[COPY_BYTES];
    struct chunk_place copy = {.offset = w->end, .head = place->head};
    uint64_t left = CHUNK_HEAD_BYTES + place->head.stored_bytes;
    for (uint64_t at = place->offset; left > 0;) {
        const size_t len = left < sizeof(piece) ? (size_t)left : sizeof(piece);
        TRY(chunk_source_read(source, at, piece, len, info));
        TRY(write_at(w, piece, len, info));
        at += len;
        left -= len;
    }
    return chunk_vec_push(&w->contents, copy) == ERR_OK
               ? ERR_OK
               : err_set(info, ERR_NO_MEMORY, "no memory for the table of contents");
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
    TRY(put_chunk(w, (struct chunk_head){.type = CHUNK_CONTENTS}, info));
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
    if (!w->options.is_plain) {
        w->zstd = ZSTD_createCCtx();
        if (w->zstd == NULL) {
            return err_set(info, ERR_NO_MEMORY, "no memory for zstd");
        }
        const int level = w->options.level != 0 ? w->options.level : DEFAULT_LEVEL;
        (void)ZSTD_CCtx_setParameter(w->zstd, ZSTD_c_compressionLevel, level); // clamped
    }
    uint8_t header[FILE_HEADER_BYTES];
    file_header_put(header);
    enum err err = write_at(w, header, sizeof(header), info);
    if (err != ERR_OK) {
        recording_writer_release(w);
    }
    return err;
}

void recording_writer_release(struct recording_writer *w)
{
    chunk_vec_release(&w->contents);
    strbuf_release(&w->raw);
    group_encoder_release(&w->encoder);
    strbuf_release(&w->supplied);
    strbuf_release(&w->stored);
    (void)ZSTD_freeCCtx(w->zstd); // accepts NULL
    *w = (struct recording_writer){0};
}

enum err recording_write(const struct recording *recording,
                         const char *path,
                         const struct recording_write_options *options,
                         struct err_info *info)
{
    CLEANUP(replacement_abandon) struct replacement file = {0};
    CLEANUP(recording_writer_release) struct recording_writer w = {0};
    const mode_t mode =
        options != NULL && options->mode != 0 ? options->mode : (mode_t)FILE_MODE_PRIVATE;
    TRY(replacement_begin_regular(&file, path, mode, info));
    TRY(recording_writer_init(&w, fileno(file.stream), path, options, info));
    TRY(recording_writer_snapshot(&w, recording, info));
    TRY(recording_writer_finish(&w, info));
    return replacement_commit(&file, options != NULL && options->is_durable, info);
}

static MUST_USE enum err
copy_chunks(const struct chunk_source *source, struct recording_writer *w, struct err_info *info)
{
    CLEANUP(chunk_index_release) struct chunk_index index = {0};
    CLEANUP(chunk_payload_release) struct chunk_payload payload = {0};
    TRY(chunk_index_build(source, false, &index, info));
    if (!index.has_footer) {
        return err_set(info, ERR_TRUNCATED, "'%s' has no end", source->path);
    }
    for (size_t i = 0; i < index.chunks.len; i++) {
        const struct chunk_place *place = &index.chunks.items[i];
        if (place->head.generation == 0) {
            TRY(chunk_payload_check(source, place, &payload, info));
            TRY(recording_writer_copy(w, source, place, info));
        }
    }
    return ERR_OK;
}

// Give `to` the mode of `from`, and its owner if permitted.
static void keep_mode_and_owner(int from, int to)
{
    struct stat status;
    if (fstat(from, &status) == 0) {
        (void)!fchown(to, status.st_uid, status.st_gid);
        (void)fchmod(to, status.st_mode & 0777);
    }
}

enum err recording_rewrite(const char *path,
                           const struct recording *recording,
                           uint32_t generation,
                           struct err_info *info)
{
    CLEANUP(fd_closep) int fd = -1;
    struct chunk_source source;
    struct file_header header;
    TRY(recording_file_open(path, &fd, &source, info));
    TRY(recording_file_check(&source, &header, info));
    CLEANUP(replacement_abandon) struct replacement file = {0};
    CLEANUP(recording_writer_release) struct recording_writer w = {0};
    const struct recording_write_options options = {.generation = generation};
    TRY(replacement_begin_regular(&file, path, FILE_MODE_PRIVATE, info));
    keep_mode_and_owner(fd, fileno(file.stream));
    TRY(recording_writer_init(&w, fileno(file.stream), path, &options, info));
    TRY(copy_chunks(&source, &w, info));
    TRY(recording_writer_snapshot(&w, recording, info));
    TRY(recording_writer_finish(&w, info));
    return replacement_commit(&file, true, info);
}
