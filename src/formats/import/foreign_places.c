// SPDX-License-Identifier: MIT
#include "formats/import/foreign_places.h"

#include "base/order.h"
#include "base/search.h"

enum {
    FIXED_BELOW = 0x10000000, // limit for the address of an executable that was linked for it
};

void mapped_files_add(struct mapped_file_vec *files,
                      struct import *import,
                      struct bytes path,
                      struct mapped_file range,
                      uint64_t offset)
{
    const struct mapped_file *last = files->len > 0 ? &files->items[files->len - 1] : NULL;
    range.module = path.len > 0 ? import_module(import, path) : REC_NONE;
    bool is_further = last != NULL && last->module == range.module && offset > 0;
    range.base = is_further ? last->base : range.start - offset;
    range.base = range.start < FIXED_BELOW ? 0 : range.base;
    import_need(import, mapped_file_vec_push(files, range));
}

static int compare_starts(const void *left, const void *right)
{
    const struct mapped_file *a = left;
    const struct mapped_file *b = right;
    return order_u64(a->start, b->start);
}

void mapped_files_sort(struct mapped_file_vec *files)
{
    mapped_file_vec_sort(files, compare_starts);
}

const struct mapped_file *mapped_files_find(const struct mapped_file_vec *files,
                                            uint64_t return_address)
{
    const struct mapped_file *items = files->items;
    const size_t next = FIRST_WHERE(at, files->len, items[at].start >= return_address);
    const struct mapped_file *found = next > 0 ? &items[next - 1] : NULL;
    return found != NULL && return_address <= found->end ? found : NULL;
}

static struct bytes part_of(struct bytes text, size_t first, size_t end)
{
    return (struct bytes){.data = text.data + first, .len = end - first};
}

// Take "0x10A2FA: " off the start of the text. Return 0 if there is none.
static uint64_t take_address(struct bytes *text)
{
    struct bytes rest = *text;
    uint64_t address;
    if (!import_take_text(&rest, "0x") || !import_take_number(&rest, 16, &address) ||
        !import_take_text(&rest, ": ")) {
        return 0;
    }
    *text = rest;
    return address;
}

// Take " (what)" off the end of the text.
static struct bytes take_parenthesis(struct bytes *text)
{
    if (text->len < 4 || text->data[text->len - 1] != ')') {
        return (struct bytes){.data = text->data, .len = 0};
    }
    for (size_t at = text->len - 2; at > 1; at--) {
        if (text->data[at] == '(' && text->data[at - 1] == ' ') {
            struct bytes inside = part_of(*text, at + 1, text->len - 1);
            *text = part_of(*text, 0, at - 1);
            return inside;
        }
    }
    return (struct bytes){.data = text->data, .len = 0};
}

// Split "t.cpp:10".
static void split_line(struct bytes place, struct bytes *file, uint32_t *line)
{
    size_t at = place.len;
    uint32_t number = 0;
    uint32_t scale = 1;
    while (at > 0 && place.len - at < 9 && place.data[at - 1] >= '0' && place.data[at - 1] <= '9') {
        number += scale * (uint32_t)(place.data[at - 1] - '0');
        scale *= 10;
        at--;
    }
    bool has_line = at > 0 && at < place.len && place.data[at - 1] == ':';
    *file = has_line ? part_of(place, 0, at - 1) : place;
    *line = has_line ? number : 0;
}

static void new_frame(struct import *import, struct bytes text)
{
    struct recording_builder *b = import->b;
    struct rec_frame frame = {.module = REC_NONE,
                              .flags = REC_FRAME_EXACT_PC | REC_FRAME_LOADED,
                              .symbol_first = (uint32_t)b->symbols.len};
    struct rec_symbol symbol = {0};
    frame.offset = take_address(&text);
    struct bytes where = take_parenthesis(&text);
    if (import_take_text(&where, "in ")) {
        frame.module = import_module(import, where);
    } else if (where.len > 0) {
        struct bytes file;
        split_line(where, &file, &symbol.line);
        symbol.file = import_string(import, file);
    }
    if (!import_take_text(&text, "???")) {
        symbol.function = import_string(import, text);
    }
    if (symbol.function != 0 || symbol.file != 0) {
        import_need(import, symbols_vec_push(&b->symbols, symbol));
        frame.symbol_count = 1;
    }
    import_need(import, frames_vec_push(&b->frames, frame));
}

uint32_t valgrind_place_frame(struct map_u64 *frame_of, struct import *import, struct bytes text)
{
    const rec_string id = import_string(import, text);
    uint32_t frame;
    if (!map_u64_get(frame_of, id, &frame)) {
        new_frame(import, text);
        frame = (uint32_t)import->b->frames.len - 1;
        import_need(import, map_u64_put(frame_of, id, frame));
    }
    return frame;
}
