// SPDX-License-Identifier: MIT
// import_dhat: JSON of Valgrind's DHAT and of Rust's dhat crate, file version 2.
//
// A "program point" is a stack with its totals, and its live bytes at the global maximum and at the
// end. Its own peak is DHAT's: Valgrind updates it only while the whole heap is at a maximum. There
// are no time line and no histogram.
//
// In the ad-hoc mode the points are the program's own events. Their "bytes" are units of the
// program, and the file has no heap figures. An event's name is the innermost frame if it has the
// form of cairn's events; otherwise the importer adds a frame with the file's name for its units.
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

#include "base/compiler.h"
#include "formats/import/foreign_places.h"
#include "formats/import/import_formats.h"

enum {
    CONTENT_BASE_BYTES = 64 << 20,
    CONTENT_RATIO = 4, // bytes of JSON for a byte of the packed file
};

struct dhat {
    struct import *import;   // borrowed
    struct strbuf text;      // owned; the content, then the name of the unit
    json_t *root;            // owned
    struct map_u64 frame_of; // owned; by a text of foreign_places.h
    struct u32_vec frames;   // owned; by index in "ftbl"
    uint32_t thread;
    uint32_t unit_frame; // REC_NONE: not needed yet
    bool has_lifetimes;
    bool is_adhoc;
};

static void release_dhat(void *state)
{
    struct dhat *d = state;
    strbuf_release(&d->text);
    json_decref(d->root);
    map_u64_release(&d->frame_of);
    u32_vec_release(&d->frames);
}

static void require(struct dhat *d, bool is_sound, const char *what, size_t number)
{
    if (!is_sound) {
        import_end(d->import,
                   err_set(d->import->info, ERR_CORRUPT, "'%s', %s %zu: not as DHAT writes it",
                           d->import->in->path, what, number));
    }
}

static void parse_document(struct dhat *d)
{
    struct import *import = d->import;
    uint64_t limit_bytes = CONTENT_BASE_BYTES + import->in->file_bytes * CONTENT_RATIO;
    import_need(import, unpacked_all(import->in, limit_bytes, &d->text, import->info));
    json_error_t error;
    d->root = json_loadb(strbuf_text(&d->text), d->text.len, JSON_REJECT_DUPLICATES, &error);
    strbuf_release(&d->text);
    if (d->root == NULL) {
        import_end(import, err_set(import->info, ERR_CORRUPT, "'%s', line %d: %.150s",
                                   import->in->path, error.line, error.text));
    }
}

// Get a field that must be a non-negative number.
static bool get_number(const json_t *object, const char *key, uint64_t *out)
{
    json_t *value = json_object_get(object, key);
    if (!json_is_integer(value) || json_integer_value(value) < 0) {
        return false;
    }
    *out = (uint64_t)json_integer_value(value);
    return true;
}

static void read_frames(struct dhat *d)
{
    json_t *table = json_object_get(d->root, "ftbl");
    for (size_t i = 0; i < json_array_size(table); i++) {
        uint32_t frame = REC_NONE;
        json_t *item = json_array_get(table, i);
        require(d, json_is_string(item), "ftbl entry", i);
        struct bytes text = {.data = (const uint8_t *)json_string_value(item),
                             .len = json_string_length(item)};
        if (i > 0) { // the first one is the root
            frame = valgrind_place_frame(&d->frame_of, d->import, text);
        }
        import_need(d->import, u32_vec_push(&d->frames, frame));
    }
    require(d, json_is_array(table), "ftbl", 0);
}

// Return the node of a point's stack.
static uint32_t read_stack(struct dhat *d, const json_t *point, size_t number)
{
    json_t *stack = json_object_get(point, "fs");
    uint32_t node = 0;
    for (size_t i = json_array_size(stack); i > 0; i--) { // innermost first
        json_t *item = json_array_get(stack, i - 1);
        json_int_t frame = json_integer_value(item);
        require(d, json_is_integer(item) && frame >= 0 && (size_t)frame < d->frames.len,
                "pps entry", number);
        node = frame > 0 ? import_node(d->import, node, d->frames.items[frame]) : node;
    }
    require(d, json_is_array(stack), "pps entry", number);
    return node;
}

static bool is_event_name(const struct dhat *d, uint32_t node)
{
    const struct recording_builder *b = d->import->b;
    if (node == 0) {
        return false;
    }
    const struct rec_frame *frame = &b->frames.items[b->nodes.items[node].frame];
    const char *name =
        frame->symbol_count > 0
            ? string_table_get(&b->strings, b->symbols.items[frame->symbol_first].function)
            : "";
    return strncmp(name, "[event ", 7) == 0;
}

static uint32_t find_unit_frame(struct dhat *d)
{
    if (d->unit_frame == REC_NONE) {
        const char *units = json_string_value(json_object_get(d->root, "bsu"));
        units = units != NULL ? units : "units";
        // The module has the same name, as for cairn's own events.
        strbuf_printf(&d->text, "[event %.47s] (in [event %.47s])", units, units);
        import_need(d->import, strbuf_result(&d->text));
        d->unit_frame = valgrind_place_frame(&d->frame_of, d->import, strbuf_bytes(&d->text));
    }
    return d->unit_frame;
}

static void read_event(struct dhat *d, size_t number)
{
    const json_t *point = json_array_get(json_object_get(d->root, "pps"), number);
    struct rec_adhoc event = {0};
    require(d, get_number(point, "tb", &event.weight) && get_number(point, "tbk", &event.events),
            "pps entry", number);
    event.node = read_stack(d, point, number);
    if (!is_event_name(d, event.node)) {
        event.node = import_node(d->import, event.node, find_unit_frame(d));
    }
    import_need(d->import, adhoc_vec_push(&d->import->b->adhoc, event));
}

// Add the peaks of a stack. Return false if a sum exceeds what a heap can have.
static bool count_peaks(struct dhat *d, uint32_t row, const struct rec_row *add)
{
    struct rec_row *to = &d->import->b->rows.items[row];
    struct rec_totals *totals = &d->import->b->totals;
    to->peak_bytes += add->peak_bytes;
    to->peak_blocks += add->peak_blocks;
    return !__builtin_add_overflow(to->own_peak_bytes, add->own_peak_bytes, &to->own_peak_bytes) &&
           !__builtin_add_overflow(totals->peak_bytes, add->peak_bytes, &totals->peak_bytes) &&
           !__builtin_add_overflow(totals->peak_blocks, add->peak_blocks, &totals->peak_blocks);
}

static void read_point(struct dhat *d, size_t number)
{
    const json_t *point = json_array_get(json_object_get(d->root, "pps"), number);
    struct import_counts counts = {0};
    struct rec_row add = {0};
    require(d,
            get_number(point, "tb", &counts.all_bytes) &&
                get_number(point, "tbk", &counts.all_blocks),
            "pps entry", number);
    counts.live_blocks = counts.all_blocks; // without lifetimes nothing is ever freed
    counts.live_bytes = counts.all_bytes;
    require(d,
            !d->has_lifetimes || (get_number(point, "eb", &counts.live_bytes) &&
                                  get_number(point, "ebk", &counts.live_blocks) &&
                                  get_number(point, "gb", &add.peak_bytes) &&
                                  get_number(point, "gbk", &add.peak_blocks) &&
                                  get_number(point, "mb", &add.own_peak_bytes)),
            "pps entry", number);
    require(d, counts.live_blocks <= counts.all_blocks && counts.live_bytes <= counts.all_bytes,
            "pps entry", number);
    const uint32_t row = import_row(d->import, d->thread, read_stack(d, point, number));
    require(d, import_count(d->import, row, &counts) && count_peaks(d, row, &add), "pps entry",
            number);
}

static void read_head(struct dhat *d)
{
    struct rec_meta *meta = &d->import->b->meta;
    uint64_t version;
    uint64_t pid;
    uint64_t end;
    const char *command = json_string_value(json_object_get(d->root, "cmd"));
    const char *unit = json_string_value(json_object_get(d->root, "tu"));
    if (!get_number(d->root, "dhatFileVersion", &version) || version != 2) {
        import_end(d->import, err_set(d->import->info, ERR_UNSUPPORTED,
                                      "'%s' has another version of DHAT's file format than 2",
                                      d->import->in->path));
    }
    d->has_lifetimes = json_is_true(json_object_get(d->root, "bklt"));
    const char *mode = json_string_value(json_object_get(d->root, "mode"));
    d->is_adhoc = mode != NULL && (strcmp(mode, "ad-hoc") == 0 || strcmp(mode, "rust-ad-hoc") == 0);
    if (d->is_adhoc) {
        meta->unknown |= REC_UNKNOWN_ALLOCATIONS | REC_UNKNOWN_BLOCKS;
    }
    if (!d->has_lifetimes) {
        meta->unknown |= REC_UNKNOWN_PEAK | REC_UNKNOWN_LEAKED | REC_UNKNOWN_OWN_PEAK;
    }
    if (unit != NULL && strcmp(unit, "µs") == 0 && get_number(d->root, "te", &end)) {
        meta->runtime_ms = end / 1000;
        meta->unknown &= ~(uint32_t)REC_UNKNOWN_TIME;
        if (get_number(d->root, "tg", &end)) {
            d->import->b->totals.peak_time_ms = end / 1000;
        }
    }
    meta->pid = get_number(d->root, "pid", &pid) && pid <= INT32_MAX ? (uint32_t)pid : 0;
    import_need(d->import, recording_builder_string(d->import->b, command, &meta->command_line));
}

static void read_dhat(struct import *import, void *state)
{
    struct dhat *d = state;
    *d = (struct dhat){.import = import, .unit_frame = REC_NONE};
    parse_document(d);
    read_head(d);
    d->thread = import_thread(import, 0, "all threads");
    read_frames(d);
    size_t count = json_array_size(json_object_get(d->root, "pps"));
    for (size_t i = 0; i < count; i++) {
        (d->is_adhoc ? read_event : read_point)(d, i);
        import_check_memory(import, 0);
    }
    recording_builder_sum(import->b);
    import->b->processes.items[0].peak_bytes = import->b->totals.peak_bytes;
}

static bool recognizes_dhat(struct bytes head)
{
    static const char key[] = "\"dhatFileVersion\"";
    size_t at = 0;
    while (at < head.len && (head.data[at] == ' ' || head.data[at] == '\n')) {
        at++;
    }
    return at < head.len && head.data[at] == '{' &&
           memmem(head.data + at, head.len - at < 64 ? head.len - at : 64, key, sizeof(key) - 1) !=
               NULL;
}

const struct importer importer_dhat = {
    .name = "dhat",
    .phrase = "reading the DHAT file",
    .unknown =
        REC_UNKNOWN_TEMPORARY | REC_UNKNOWN_TIME | REC_UNKNOWN_LIFETIMES | REC_UNKNOWN_THREADS,
    .recognizes = recognizes_dhat,
    .state_bytes = sizeof(struct dhat),
    .release = release_dhat,
    .read = read_dhat,
};
