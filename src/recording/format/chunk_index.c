// SPDX-License-Identifier: MIT
#include "recording/format/chunk_index.h"

#include "base/compiler.h"

// Bytes to read at once in a search for a head. The first read is small, so that many small damages
// cost little.
enum {
    SEARCH_FIRST_BYTES = 256,
    SEARCH_MOST_BYTES = 64 << 10,
};

void chunk_index_release(struct chunk_index *index)
{
    chunk_vec_release(&index->chunks);
    *index = (struct chunk_index){0};
}

static bool fits(uint64_t offset, uint64_t stored_bytes, uint64_t end)
{
    return offset <= end && end - offset >= CHUNK_HEAD_BYTES &&
           stored_bytes <= end - offset - CHUNK_HEAD_BYTES;
}

static uint64_t end_of(const struct chunk_place *place)
{
    return place->offset + CHUNK_HEAD_BYTES + place->head.stored_bytes;
}

static bool read_footer(const struct chunk_source *source, struct file_footer *out)
{
    uint8_t bytes[FILE_FOOTER_BYTES];
    if (source->bytes < FILE_HEADER_BYTES + FILE_FOOTER_BYTES) {
        return false;
    }
    return chunk_source_read(source, source->bytes - sizeof(bytes), bytes, sizeof(bytes), NULL) ==
               ERR_OK &&
           file_footer_get(bytes, out) && out->file_bytes == source->bytes;
}

static bool read_head(const struct chunk_source *source, uint64_t offset, struct chunk_head *out)
{
    uint8_t bytes[CHUNK_HEAD_BYTES];
    return chunk_source_read(source, offset, bytes, sizeof(bytes), NULL) == ERR_OK &&
           chunk_head_get(bytes, out);
}

// Fill the index from the table of contents. Return false, with the index empty, if there is none
// or it is invalid.
static bool index_from_contents(const struct chunk_source *source, struct chunk_index *index)
{
    struct file_footer footer;
    struct chunk_place contents;
    CLEANUP(chunk_payload_release) struct chunk_payload payload = {0};
    struct bytes lines;
    if (!read_footer(source, &footer) ||
        !read_head(source, footer.contents_offset, &contents.head)) {
        return false;
    }
    contents.offset = footer.contents_offset;
    if (contents.head.type != CHUNK_CONTENTS ||
        !fits(contents.offset, contents.head.stored_bytes, source->bytes - FILE_FOOTER_BYTES) ||
        chunk_payload_read(source, &contents, &payload, &lines, NULL) != ERR_OK ||
        lines.len % CONTENTS_ENTRY_BYTES != 0) {
        return false;
    }
    uint64_t free_from = FILE_HEADER_BYTES;
    for (size_t at = 0; at < lines.len; at += CONTENTS_ENTRY_BYTES) {
        struct chunk_place place;
        contents_entry_get(lines.data + at, &place);
        if (place.offset < free_from ||
            !fits(place.offset, place.head.stored_bytes, contents.offset) ||
            chunk_vec_push(&index->chunks, place) != ERR_OK) {
            chunk_vec_clear(&index->chunks);
            return false;
        }
        free_from = end_of(&place);
    }
    index->has_footer = true;
    index->is_from_contents = true;
    return true;
}

static void note_cut(struct chunk_index *index, uint64_t bytes)
{
    index->is_cut = true;
    index->cut_bytes = bytes;
}

static void note_damage(struct chunk_index *index, uint64_t offset, uint64_t bytes)
{
    if (index->damaged_bytes == 0) {
        index->damaged_offset = offset;
    }
    index->damaged_bytes += bytes;
}

// Search for a head from `from` on. Set *out to its offset, or to the end of the file if there is
// none.
static enum err
find_head(const struct chunk_source *source, uint64_t from, uint64_t *out, struct err_info *info)
{
    CLEANUP(strbuf_release) struct strbuf window = {0};
    size_t window_bytes = SEARCH_FIRST_BYTES;
    while (source->bytes - from >= CHUNK_HEAD_BYTES) {
        uint64_t left = source->bytes - from;
        size_t len = left < window_bytes ? (size_t)left : window_bytes;
        if (!strbuf_reserve(&window, len)) {
            return err_set(info, ERR_NO_MEMORY, "no memory to read '%s'", source->path);
        }
        TRY(chunk_source_read(source, from, window.data, len, info));
        for (size_t at = 0; at + CHUNK_HEAD_BYTES <= len; at++) {
            struct chunk_head head;
            if (chunk_head_get((const uint8_t *)window.data + at, &head)) {
                *out = from + at;
                return ERR_OK;
            }
        }
        from += len - CHUNK_HEAD_BYTES + 1;
        window_bytes = window_bytes < SEARCH_MOST_BYTES ? window_bytes * 2 : window_bytes;
    }
    *out = source->bytes;
    return ERR_OK;
}

// Add the chunk or the damage at `offset`, where a chunk should begin, and advance the offset.
static enum err walk_step(const struct chunk_source *source,
                          uint64_t end,
                          uint64_t *offset,
                          struct chunk_index *index,
                          struct err_info *info)
{
    struct chunk_place place = {.offset = *offset};
    if (end - *offset < CHUNK_HEAD_BYTES) {
        note_cut(index, end - *offset);
        *offset = end;
        return ERR_OK;
    }
    if (!read_head(source, *offset, &place.head)) {
        TRY(find_head(source, *offset + 1, offset, info));
        *offset = *offset < end ? *offset : end; // the footer is not part of the damage
        note_damage(index, place.offset, *offset - place.offset);
        return ERR_OK;
    }
    if (!fits(*offset, place.head.stored_bytes, end)) {
        note_cut(index, end - *offset);
        *offset = end;
        return ERR_OK;
    }
    *offset = end_of(&place);
    if (place.head.type != CHUNK_CONTENTS && chunk_vec_push(&index->chunks, place) != ERR_OK) {
        return err_set(info, ERR_NO_MEMORY, "no memory for the chunks of '%s'", source->path);
    }
    return ERR_OK;
}

static enum err
walk_chunks(const struct chunk_source *source, struct chunk_index *index, struct err_info *info)
{
    struct file_footer footer;
    index->has_footer = read_footer(source, &footer);
    uint64_t end = source->bytes - (index->has_footer ? FILE_FOOTER_BYTES : 0);
    for (uint64_t offset = FILE_HEADER_BYTES; offset < end;) {
        TRY(walk_step(source, end, &offset, index, info));
    }
    return ERR_OK;
}

enum err chunk_index_build(const struct chunk_source *source,
                           bool ignores_contents,
                           struct chunk_index *out,
                           struct err_info *info)
{
    CLEANUP(chunk_index_release) struct chunk_index index = {0};
    if (ignores_contents || !index_from_contents(source, &index)) {
        TRY(walk_chunks(source, &index, info));
        index.is_contents_damaged = index.has_footer && !ignores_contents;
    }
    *out = TAKE(index);
    return ERR_OK;
}
