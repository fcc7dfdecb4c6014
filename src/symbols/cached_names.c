// SPDX-License-Identifier: MIT
#include "symbols/cached_names.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/compiler.h"
#include "base/order.h"
#include "base/search.h"

static const char magic[8] = {'c', 'a', 'i', 'r', 'n', 'n', 'a', 'm'};

enum {
    VERSION = 1,
    VERSION_AT = 8,
    PLACE_COUNT_AT = 12,
    CHECKSUM_AT = 16,
    SUMMED_AT = 24, // start of the bytes under the checksum
    FRAME_COUNT_AT = 24,
    TEXT_BYTES_AT = 28,
    READER_AT = 32,
    MODULE_AT = 36,
    SOURCE_AT = 40,
    HEADER_BYTES = 48,
    PLACE_BYTES = 24,
    FRAME_BYTES = 16,
};

struct cached_place cached_names_place(const struct cached_names *names, uint32_t index)
{
    const uint8_t *at = names->places + (size_t)index * PLACE_BYTES;
    return (struct cached_place){.address = get_u64(at),
                                 .function_start = get_u64(at + 8),
                                 .first = get_u32(at + 16),
                                 .count = get_u32(at + 20)};
}

struct cached_frame cached_names_frame(const struct cached_names *names, uint32_t index)
{
    const uint8_t *at = names->frames + (size_t)index * FRAME_BYTES;
    return (struct cached_frame){.function = names->text + get_u32(at),
                                 .file = names->text + get_u32(at + 4),
                                 .line = get_u32(at + 8),
                                 .is_inlined = get_u32(at + 12) != 0};
}

static bool are_places_sound(const struct cached_names *names)
{
    for (uint32_t i = 0; i < names->place_count; i++) {
        const struct cached_place place = cached_names_place(names, i);
        if (place.first > names->frame_count || place.count > names->frame_count - place.first ||
            (i > 0 && cached_names_place(names, i - 1).address >= place.address)) {
            return false;
        }
    }
    return true;
}

static bool are_frames_sound(const struct cached_names *names, uint32_t text_bytes)
{
    for (uint32_t i = 0; i < names->frame_count; i++) {
        const uint8_t *at = names->frames + (size_t)i * FRAME_BYTES;
        if (get_u32(at) >= text_bytes || get_u32(at + 4) >= text_bytes) {
            return false;
        }
    }
    return true;
}

enum err cached_names_parse(struct bytes file, struct cached_names *out)
{
    if (file.len < HEADER_BYTES || file.len > CACHED_BYTES_MAX ||
        memcmp(file.data, magic, sizeof(magic)) != 0) {
        return ERR_CORRUPT;
    }
    if (get_u32(file.data + VERSION_AT) != VERSION) {
        return ERR_UNSUPPORTED;
    }
    const uint32_t place_count = get_u32(file.data + PLACE_COUNT_AT);
    const uint32_t frame_count = get_u32(file.data + FRAME_COUNT_AT);
    const uint32_t text_bytes = get_u32(file.data + TEXT_BYTES_AT);
    const uint64_t frames_at = HEADER_BYTES + (uint64_t)place_count * PLACE_BYTES;
    const uint64_t text_at = frames_at + (uint64_t)frame_count * FRAME_BYTES;
    const uint32_t reader = get_u32(file.data + READER_AT);
    const uint32_t module = get_u32(file.data + MODULE_AT);
    const uint32_t source = get_u32(file.data + SOURCE_AT);
    if (text_at + text_bytes != file.len || text_bytes == 0 || file.data[file.len - 1] != 0 ||
        reader >= text_bytes || module >= text_bytes || source >= text_bytes ||
        XXH3_64bits(file.data + SUMMED_AT, file.len - SUMMED_AT) !=
            get_u64(file.data + CHECKSUM_AT)) {
        return ERR_CORRUPT;
    }
    const char *text = (const char *)file.data + text_at;
    const struct cached_names names = {.places = file.data + HEADER_BYTES,
                                       .frames = file.data + frames_at,
                                       .text = text,
                                       .place_count = place_count,
                                       .frame_count = frame_count,
                                       .reader = text + reader,
                                       .module = text + module,
                                       .source = text + source};
    if (!are_places_sound(&names) || !are_frames_sound(&names, text_bytes)) {
        return ERR_CORRUPT;
    }
    *out = names;
    return ERR_OK;
}

bool cached_names_find(const struct cached_names *names, uint64_t address, struct cached_place *out)
{
    const size_t first = FIRST_WHERE(at, names->place_count,
                                     cached_names_place(names, (uint32_t)at).address >= address);
    if (first == names->place_count) {
        return false;
    }
    *out = cached_names_place(names, (uint32_t)first);
    return out->address == address;
}

void fresh_names_release(struct fresh_names *fresh)
{
    fresh_place_vec_release(&fresh->places);
    symbol_frame_vec_release(&fresh->frames);
}

enum err fresh_names_add(struct fresh_names *fresh,
                         uint64_t address,
                         uint64_t function_start,
                         const struct symbol_frame *frames,
                         uint32_t count)
{
    if (fresh->places.len >= CACHED_PLACES_MAX) {
        return ERR_OK;
    }
    const struct fresh_place place = {.address = address,
                                      .chain = {.first = (uint32_t)fresh->frames.len,
                                                .count = count,
                                                .function_start = function_start}};
    TRY(symbol_frame_vec_reserve(&fresh->frames, count));
    TRY(fresh_place_vec_push(&fresh->places, place));
    for (uint32_t i = 0; i < count; i++) {
        fresh->frames.items[fresh->frames.len++] = frames[i];
    }
    return ERR_OK;
}

// A new file in memory.
struct making {
    struct string_table texts;
    struct strbuf places;
    struct strbuf frames;
    uint32_t place_count;
    uint32_t frame_count;
};

static void making_release(struct making *m)
{
    string_table_release(&m->texts);
    strbuf_release(&m->places);
    strbuf_release(&m->frames);
}

// Return the offset in the file of a text of the table, which follows the empty text.
static uint32_t text_offset(const struct making *m, uint32_t id)
{
    return id == 0 ? 0 : m->texts.entries.items[id - 1].offset + 1;
}

static void append_u32(struct strbuf *out, uint32_t value)
{
    uint8_t bytes[4];
    put_u32(bytes, value);
    strbuf_append(out, bytes, sizeof(bytes));
}

static void append_u64(struct strbuf *out, uint64_t value)
{
    uint8_t bytes[8];
    put_u64(bytes, value);
    strbuf_append(out, bytes, sizeof(bytes));
}

static void begin_place(struct making *m, uint64_t address, uint64_t function_start, uint32_t count)
{
    append_u64(&m->places, address);
    append_u64(&m->places, function_start);
    append_u32(&m->places, m->frame_count);
    append_u32(&m->places, count);
    m->place_count++;
}

static MUST_USE enum err add_frame(struct making *m, const struct cached_frame *frame)
{
    uint32_t function;
    uint32_t file;
    TRY(string_table_intern_text(&m->texts, frame->function, &function));
    TRY(string_table_intern_text(&m->texts, frame->file, &file));
    append_u32(&m->frames, text_offset(m, function));
    append_u32(&m->frames, text_offset(m, file));
    append_u32(&m->frames, frame->line);
    append_u32(&m->frames, frame->is_inlined);
    m->frame_count++;
    return ERR_OK;
}

static MUST_USE enum err
add_old(struct making *m, const struct cached_names *old, const struct cached_place *place)
{
    begin_place(m, place->address, place->function_start, place->count);
    for (uint32_t i = 0; i < place->count; i++) {
        const struct cached_frame frame = cached_names_frame(old, place->first + i);
        TRY(add_frame(m, &frame));
    }
    return ERR_OK;
}

static MUST_USE enum err add_fresh(struct making *m,
                                   const struct fresh_names *fresh,
                                   const struct fresh_place *place,
                                   const struct string_table *strings)
{
    begin_place(m, place->address, place->chain.function_start, place->chain.count);
    for (uint32_t i = 0; i < place->chain.count; i++) {
        const struct symbol_frame *frame = &fresh->frames.items[place->chain.first + i];
        const struct cached_frame copy = {.function = string_table_get(strings, frame->function),
                                          .file = string_table_get(strings, frame->file),
                                          .line = frame->line,
                                          .is_inlined = frame->is_inlined};
        TRY(add_frame(m, &copy));
    }
    return ERR_OK;
}

static int compare_places(const void *left, const void *right)
{
    const uint64_t a = ((const struct fresh_place *)left)->address;
    const uint64_t b = ((const struct fresh_place *)right)->address;
    return order_u64(a, b);
}

// Merge two lists in ascending order of address. Of two answers for one address, take the fresh
// one.
static MUST_USE enum err merge_names(struct making *m,
                                     const struct cached_names *old,
                                     const struct fresh_names *fresh,
                                     const struct string_table *strings)
{
    const struct fresh_place *items = fresh->places.items;
    const uint32_t old_count = old != NULL ? old->place_count : 0;
    uint32_t at = 0;
    for (size_t i = 0; i < fresh->places.len; i++) {
        if (i > 0 && items[i].address == items[i - 1].address) {
            continue;
        }
        for (; at < old_count; at++) {
            const struct cached_place place = cached_names_place(old, at);
            if (place.address >= items[i].address) {
                at += place.address == items[i].address;
                break;
            }
            TRY(add_old(m, old, &place));
        }
        TRY(add_fresh(m, fresh, &items[i], strings));
    }
    for (; at < old_count; at++) {
        const struct cached_place place = cached_names_place(old, at);
        TRY(add_old(m, old, &place));
    }
    return ERR_OK;
}

static MUST_USE enum err
finish_names(struct making *m, const struct cached_names_labels *labels, struct strbuf *out)
{
    uint32_t reader;
    uint32_t module;
    uint32_t source;
    TRY(string_table_intern_text(&m->texts, labels->reader, &reader));
    TRY(string_table_intern_text(&m->texts, labels->module, &module));
    TRY(string_table_intern_text(&m->texts, labels->source, &source));
    TRY(strbuf_result(&m->places));
    TRY(strbuf_result(&m->frames));
    const size_t begin = out->len;
    const size_t text_bytes = m->texts.texts.len + 1;
    if (HEADER_BYTES + m->places.len + m->frames.len + text_bytes > CACHED_BYTES_MAX) {
        return ERR_LIMIT;
    }
    strbuf_append(out, magic, sizeof(magic));
    append_u32(out, VERSION);
    append_u32(out, m->place_count);
    append_u64(out, 0); // the checksum
    append_u32(out, m->frame_count);
    append_u32(out, (uint32_t)text_bytes);
    append_u32(out, text_offset(m, reader));
    append_u32(out, text_offset(m, module));
    append_u32(out, text_offset(m, source));
    append_u32(out, 0);
    strbuf_append(out, strbuf_text(&m->places), m->places.len);
    strbuf_append(out, strbuf_text(&m->frames), m->frames.len);
    strbuf_append_char(out, '\0');
    strbuf_append(out, m->texts.texts.items, m->texts.texts.len);
    TRY(strbuf_result(out));
    uint8_t *file = (uint8_t *)out->data + begin;
    put_u64(file + CHECKSUM_AT, XXH3_64bits(file + SUMMED_AT, out->len - begin - SUMMED_AT));
    return ERR_OK;
}

enum err cached_names_write(const struct cached_names *old,
                            struct fresh_names *fresh,
                            const struct string_table *strings,
                            const struct cached_names_labels *labels,
                            struct strbuf *out)
{
    CLEANUP(making_release) struct making m = {0};
    if (old != NULL && old->place_count + fresh->places.len > CACHED_PLACES_MAX) {
        old = NULL;
    }
    fresh_place_vec_sort(&fresh->places, compare_places);
    TRY(merge_names(&m, old, fresh, strings));
    return finish_names(&m, labels, out);
}
