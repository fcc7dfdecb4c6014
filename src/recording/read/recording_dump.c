// SPDX-License-Identifier: MIT
#include "recording/read/recording_dump.h"

#include "base/cursor.h"
#include "host/os/file.h"
#include "recording/format/chunk_index.h"
#include "recording/format/recording_file.h"
#include "recording/format/schema.h"

struct dump {
    struct chunk_source source;
    struct chunk_index index;  // from walking the file
    struct chunk_index listed; // from the table of contents
    struct chunk_payload payload;
    struct dump_summary summary;
};

static void dump_release(struct dump *d)
{
    chunk_index_release(&d->index);
    chunk_index_release(&d->listed);
    chunk_payload_release(&d->payload);
}

// Read the payload of a chunk of a known type; check only the hash of any other.
static enum err examine_chunk(struct dump *d,
                              const struct chunk_place *place,
                              struct dumped_chunk *chunk,
                              struct err_info *problem)
{
    const struct rec_table *table = rec_table_find(place->head.type);
    struct bytes payload;
    if (table == NULL) {
        return chunk_payload_check(&d->source, place, &d->payload, problem);
    }
    TRY(chunk_payload_read(&d->source, place, &d->payload, &payload, problem));
    struct cursor c = cursor_over(payload);
    chunk->table = table->name;
    chunk->first = cursor_u64(&c);
    chunk->count = cursor_u32(&c);
    return c.failed ? err_set(problem, ERR_CORRUPT, "the chunk is too short") : ERR_OK;
}

static bool same_places(const struct chunk_index *a, const struct chunk_index *b)
{
    if (a->chunks.len != b->chunks.len) {
        return false;
    }
    for (size_t i = 0; i < a->chunks.len; i++) {
        if (a->chunks.items[i].offset != b->chunks.items[i].offset ||
            a->chunks.items[i].head.payload_hash != b->chunks.items[i].head.payload_hash) {
            return false;
        }
    }
    return true;
}

static enum err dump_chunks(struct dump *d,
                            bool (*visit)(void *context, const struct dumped_chunk *chunk),
                            void *context,
                            struct err_info *info)
{
    for (size_t i = 0; i < d->index.chunks.len; i++) {
        const struct chunk_place *place = &d->index.chunks.items[i];
        struct err_info problem = {0};
        struct dumped_chunk chunk = {.offset = place->offset, .head = place->head, .table = ""};
        chunk_type_text(place->head.type, chunk.type);
        chunk.condition = examine_chunk(d, place, &chunk, &problem);
        chunk.problem = problem.text;
        if (chunk.condition == ERR_IO || chunk.condition == ERR_NO_MEMORY) {
            return err_set(info, chunk.condition, "%s", problem.text);
        }
        d->summary.damaged_chunks += chunk.condition != ERR_OK;
        if (!visit(context, &chunk)) {
            return err_set(info, ERR_CANCELLED, "reading '%s' was stopped", d->source.path);
        }
    }
    return ERR_OK;
}

enum err recording_dump(const char *path,
                        bool (*visit)(void *context, const struct dumped_chunk *chunk),
                        void *context,
                        struct dump_summary *out,
                        struct err_info *info)
{
    CLEANUP(fd_closep) int fd = -1;
    CLEANUP(dump_release) struct dump d = {0};
    struct file_header header;
    TRY(recording_file_open(path, &fd, &d.source, info));
    TRY(recording_file_check(&d.source, &header, info));
    TRY(chunk_index_build(&d.source, true, &d.index, info));
    TRY(chunk_index_build(&d.source, false, &d.listed, info));
    d.summary = (struct dump_summary){
        .file_bytes = d.source.bytes,
        .major = header.major,
        .minor = header.minor,
        .is_header_damaged = header.is_damaged,
        .has_footer = d.index.has_footer,
        .has_contents = d.listed.is_from_contents && same_places(&d.index, &d.listed),
        .chunk_count = d.index.chunks.len,
        .unreadable_bytes = d.index.damaged_bytes + d.index.cut_bytes,
        .unreadable_offset =
            d.index.damaged_bytes > 0 ? d.index.damaged_offset : d.source.bytes - d.index.cut_bytes,
    };
    TRY(dump_chunks(&d, visit, context, info));
    *out = d.summary;
    return ERR_OK;
}
