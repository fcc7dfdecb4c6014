// SPDX-License-Identifier: MIT
// recording_writer: see recording_writer.h.
//
// The packer gets a chunk as a group of a table's entries, or as a payload in memory (raw). A loop
// of pwrite writes the packed chunk at `end`, and it counts only when it is complete.
#include "recording/write/recording_writer.h"

#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#include "host/os/file.h"
#include "recording/format/schema.h"

enum {
    DEFAULT_LEVEL = 4, // one more costs a third more time, for 2 % of the bytes
    COPY_BYTES = 32768,
    OWNED_GROUPS_MAX = 4, // limit for pending groups that own their entries: some MiB each
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

// Write the oldest pending chunk.
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

// Move the content of `given` to `to`, and leave another buffer in `given`.
static void hand_over(struct strbuf *given, struct strbuf *to)
{
    const struct strbuf empty = *to;
    *to = *given;
    *given = empty;
}

// Begin a chunk, after waiting for room.
static enum err begin_chunk(struct recording_writer *w,
                            const struct chunk_head *head,
                            bool owns_entries,
                            struct packed_chunk **out,
                            struct err_info *info)
{
    while (chunk_packer_is_full(&w->packer) ||
           (owns_entries && chunk_packer_owning_count(&w->packer) >= OWNED_GROUPS_MAX)) {
        TRY(write_oldest(w, info));
    }
    *out = chunk_packer_begin(&w->packer);
    (*out)->head = *head;
    return ERR_OK;
}

// Submit the chunk for packing; it is written later.
static enum err submit(struct recording_writer *w, struct err_info *info)
{
    chunk_packer_submit(&w->packer);
    return w->packer.workers_wanted > 0 ? ERR_OK : write_packed(w, info);
}

// Take w->raw as the payload of the next chunk.
static enum err
put_chunk(struct recording_writer *w, const struct chunk_head *head, struct err_info *info)
{
    struct packed_chunk *chunk = NULL;
    if (strbuf_result(&w->raw) != ERR_OK) {
        return err_set(info, ERR_NO_MEMORY, "no memory for a chunk");
    }
    TRY(begin_chunk(w, head, false, &chunk, info));
    hand_over(&w->raw, &chunk->raw);
    return submit(w, info);
}

// Take the group for the next chunk. If its entries are in w->supplied, the chunk takes them over.
static enum err put_group(struct recording_writer *w,
                          const struct chunk_head *head,
                          const struct entry_group *group,
                          struct err_info *info)
{
    struct packed_chunk *chunk = NULL;
    const bool owns_entries = group->entries == w->supplied.data;
    TRY(begin_chunk(w, head, owns_entries, &chunk, info));
    chunk->group = *group;
    if (owns_entries) {
        hand_over(&w->supplied, &chunk->entries);
    }
    return submit(w, info);
}

// Return the head of the snapshot's next chunk.
static struct chunk_head next_part(struct recording_writer *w, uint32_t type)
{
    return (struct chunk_head){.type = type, .generation = w->generation, .part = w->part++};
}

// Write w->raw as the next chunk of the snapshot.
static enum err put_part(struct recording_writer *w, uint32_t type, struct err_info *info)
{
    const struct chunk_head head = next_part(w, type);
    return put_chunk(w, &head, info);
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
        if (err == ERR_LIMIT) {
            return err_set(info, err, "string %zu is not terminated or longer than %d bytes",
                           first + count, GROUP_MAX_STRING_BYTES);
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
        const struct chunk_head head = next_part(w, table->chunk_type);
        TRY(put_group(w, &head, &group, info));
        TRY(report_progress(w, count, info));
        first += count;
    }
    return ERR_OK;
}

static void announce(struct strbuf *out, uint32_t chunk_type, uint64_t entries)
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
            announce(&w->raw, rec_tables[i].chunk_type, entries);
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
    drop_packed(w); // chunks of a failed snapshot
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
    const struct entry_group group = {
        .table = table, .entries = entries, .first = first, .count = count};
    TRY(put_group(w, &(struct chunk_head){.type = table->chunk_type}, &group, info));
    return write_packed(w, info);
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
    TRY(put_chunk(w, &(struct chunk_head){.type = CHUNK_CONTENTS}, info));
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
    group_encoder_release(&w->encoder);
    strbuf_release(&w->supplied);
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
    const mode_t mode =
        options != NULL && options->mode != 0 ? options->mode : (mode_t)FILE_MODE_PRIVATE;
    TRY(replacement_begin(&file, path, mode, info));
    TRY(recording_writer_init(&w, fileno(file.stream), path, options, info));
    TRY(recording_writer_snapshot(&w, recording, info));
    TRY(recording_writer_finish(&w, info));
    return replacement_commit(&file, options != NULL && options->is_durable, info);
}
