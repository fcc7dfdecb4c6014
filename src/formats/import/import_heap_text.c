// SPDX-License-Identifier: MIT
// import_heap_text: the text heap profiles of gperftools, tcmalloc and jemalloc.
//
//   heap profile: 3: 96 [ 5: 160] @ heapprofile            live blocks: bytes [ all of the run ]
//     1: 32 [ 2: 64] @ 0x7f82f045110b 0x56136a460525       of one stack, innermost first
//
//   heap_v2/524288                                         jemalloc: bytes between two samples
//     t*: 3: 96 [0: 0]
//   @ 0x7f82f045110b 0x56136a460525
//     t*: 1: 32 [0: 0]                                      of all threads
//     t0: 1: 32 [0: 0]                                      of one thread
//
//   MAPPED_LIBRARIES:                                       /proc/PID/maps
//
// With "@ heap_v2/N" the figures of the first kind are samples, too. Samples are scaled as by
// pprof, for each stack by its mean size: 1 / (1 - exp(-size / N)). They are estimates, and a note
// says so. Blocks that were live when the profile was written count as live at the end. Addresses
// are return addresses. Innermost frames in the allocator's own library are omitted.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "formats/import/foreign_places.h"
#include "formats/import/import_formats.h"
#include "host/os/file.h"

enum {
    STACK_MAX = 4096,
};

// One stack on one thread.
struct entry {
    struct import_counts counts;
    uint32_t thread;
    uint32_t first; // index of its first address
    uint32_t count;
};

DEFINE_VEC(entry_vec, struct entry);

struct heap_text {
    struct import *import;        // borrowed
    struct entry_vec entries;     // owned
    struct u64_vec addresses;     // owned
    struct mapped_file_vec files; // owned
    struct map_u64 frame_of;      // owned; by address
    struct map_u64 thread_of;     // owned; by jemalloc's number
    uint32_t first;               // index of the current stack's first address
    uint32_t thread;              // for profiles without threads
    uint64_t period_bytes;        // 0: not sampled
    bool is_jemalloc;
    bool is_in_maps;
    bool has_stack; // jemalloc: a stack has begun
    bool has_all;   // some entry also counts freed blocks
};

static void release_heap_text(void *state)
{
    struct heap_text *h = state;
    entry_vec_release(&h->entries);
    u64_vec_release(&h->addresses);
    mapped_file_vec_release(&h->files);
    map_u64_release(&h->frame_of);
    map_u64_release(&h->thread_of);
}

static void skip_spaces(struct bytes *text)
{
    while (text->len > 0 && (text->data[0] == ' ' || text->data[0] == '\t')) {
        text->data++;
        text->len--;
    }
}

static bool take_text(struct bytes *text, const char *word)
{
    skip_spaces(text);
    return import_take_text(text, word);
}

static bool take_number(struct bytes *text, unsigned base, uint64_t *out)
{
    skip_spaces(text);
    return import_take_number(text, base, out);
}

// Take "1: 32 [ 2: 64]".
static bool take_counted(struct bytes *text, struct import_counts *out)
{
    return take_number(text, 10, &out->live_blocks) && take_text(text, ":") &&
           take_number(text, 10, &out->live_bytes) && take_text(text, "[") &&
           take_number(text, 10, &out->all_blocks) && take_text(text, ":") &&
           take_number(text, 10, &out->all_bytes) && take_text(text, "]");
}

static uint64_t scaled(uint64_t value, double factor)
{
    double result = (double)value * factor + 0.5;
    return result < (double)(UINT64_C(1) << 62) ? (uint64_t)result : UINT64_C(1) << 62;
}

static void unsample_counts(uint64_t *blocks, uint64_t *bytes, uint64_t period_bytes)
{
    if (*blocks == 0 || *bytes == 0 || period_bytes <= 1) {
        return;
    }
    double mean = (double)*bytes / (double)*blocks;
    double factor = 1 / -expm1(-mean / (double)period_bytes);
    *blocks = scaled(*blocks, factor);
    *bytes = scaled(*bytes, factor);
}

static void add_entry(struct heap_text *h, struct import_counts counts, uint32_t thread)
{
    unsample_counts(&counts.live_blocks, &counts.live_bytes, h->period_bytes);
    unsample_counts(&counts.all_blocks, &counts.all_bytes, h->period_bytes);
    h->has_all |= counts.all_blocks > 0;
    struct entry entry = {.counts = counts,
                          .thread = thread,
                          .first = h->first,
                          .count = (uint32_t)h->addresses.len - h->first};
    import_need(h->import, entry_vec_push(&h->entries, entry));
}

// Read "0x7f82f045110b 0x56136a460525".
static void read_stack(struct heap_text *h, struct bytes line)
{
    h->first = (uint32_t)h->addresses.len;
    for (skip_spaces(&line); line.len > 0; skip_spaces(&line)) {
        uint64_t address = 0;
        import_require(h->import, take_text(&line, "0x") && take_number(&line, 16, &address),
                       "an address of the stack makes no sense");
        import_require(h->import,
                       h->addresses.len - h->first < STACK_MAX && h->addresses.len < UINT32_MAX,
                       "the stack is too deep");
        import_need(h->import, u64_vec_push(&h->addresses, address));
    }
}

static uint32_t find_thread(struct heap_text *h, uint64_t number)
{
    uint32_t thread;
    if (!map_u64_get(&h->thread_of, number, &thread)) {
        char name[32];
        (void)snprintf(name, sizeof(name), "t%" PRIu64, number); // fits
        thread = import_thread(h->import, (uint32_t)number, name);
        import_need(h->import, map_u64_put(&h->thread_of, number, thread));
    }
    return thread;
}

static void read_jemalloc_line(struct heap_text *h, struct bytes line)
{
    struct import_counts counts;
    uint64_t number = 0;
    if (take_text(&line, "@")) {
        h->has_stack = true;
        read_stack(h, line);
        return;
    }
    bool is_sum = take_text(&line, "t*:");
    import_require(h->import,
                   is_sum || (take_text(&line, "t") && take_number(&line, 10, &number) &&
                              take_text(&line, ":")),
                   "this is not a line of a heap profile");
    import_require(h->import, take_counted(&line, &counts), "blocks and bytes make no sense");
    if (!is_sum && h->has_stack) { // the counts of a stack's threads stand for their sum
        add_entry(h, counts, find_thread(h, number));
    }
}

static void read_plain_line(struct heap_text *h, struct bytes line)
{
    struct import_counts counts;
    import_require(h->import, take_counted(&line, &counts) && take_text(&line, "@"),
                   "blocks and bytes make no sense");
    read_stack(h, line);
    add_entry(h, counts, h->thread);
}

// Read "7f5d9000-7f5da000 r-xp 00002000 fe:00 11036236   /usr/bin/app". A mapping without a file
// has no module.
static void read_mapping(struct heap_text *h, struct bytes line)
{
    struct mapped_file range = {0};
    uint64_t offset;
    if (!take_number(&line, 16, &range.start) || !take_text(&line, "-") ||
        !take_number(&line, 16, &range.end)) {
        return; // "build=/path" and the like
    }
    const uint8_t *path = memchr(line.data, '/', line.len);
    skip_spaces(&line);
    line.data += line.len >= 4 ? 4 : line.len; // permissions
    line.len -= line.len >= 4 ? 4 : line.len;
    if (path == NULL || path < line.data || !take_number(&line, 16, &offset)) {
        return;
    }
    size_t len = line.len - (size_t)(path - line.data);
    mapped_files_add(&h->files, h->import, (struct bytes){.data = path, .len = len}, range, offset);
    struct recording_builder *b = h->import->b;
    if (h->files.len == 1) { // the lowest mapping: Linux places the program there
        b->modules.items[0].is_executable = 1;
        b->meta.program = b->modules.items[0].path;
    }
}

static void read_first_line(struct heap_text *h, struct bytes line)
{
    struct import_counts sum;
    if (take_text(&line, "heap_v2/")) {
        h->is_jemalloc = true;
        import_require(h->import, take_number(&line, 10, &h->period_bytes), "no sampling period");
        return;
    }
    (void)take_text(&line, "heap profile:"); // present: recognizes() checked
    import_require(h->import, take_counted(&line, &sum) && take_text(&line, "@"),
                   "the sums of the profile make no sense");
    h->thread = import_thread(h->import, 0, "all threads");
    if (!take_text(&line, "heapprofile") &&
        (!(take_text(&line, "heap_v2/") || take_text(&line, "heap/")) ||
         !take_number(&line, 10, &h->period_bytes))) {
        import_refuse_line(h->import, ERR_UNSUPPORTED, "an unknown kind of heap profile");
    }
}

static void read_line(struct heap_text *h, struct bytes line)
{
    struct bytes rest = line;
    skip_spaces(&rest);
    if (h->import->in->line_number == 1) {
        read_first_line(h, line);
    } else if (take_text(&rest, "MAPPED_LIBRARIES:")) {
        h->is_in_maps = true;
    } else if (rest.len > 0) {
        (h->is_in_maps    ? read_mapping
         : h->is_jemalloc ? read_jemalloc_line
                          : read_plain_line)(h, line);
    }
}

static uint64_t used_bytes(const struct heap_text *h)
{
    return h->entries.cap * sizeof(struct entry) + h->addresses.cap * sizeof(uint64_t) +
           h->files.cap * sizeof(struct mapped_file) + h->thread_of.slot_count * 16;
}

static uint32_t find_frame(struct heap_text *h, uint64_t address)
{
    uint32_t frame;
    if (!map_u64_get(&h->frame_of, address, &frame)) {
        const struct mapped_file *mapping = mapped_files_find(&h->files, address);
        frame = import_frame(h->import, mapping != NULL ? mapping->module : REC_NONE,
                             mapping != NULL ? address - mapping->base : address);
        import_need(h->import, map_u64_put(&h->frame_of, address, frame));
    }
    return frame;
}

static bool is_of_allocator(const struct heap_text *h, uint64_t address)
{
    const struct mapped_file *mapping = mapped_files_find(&h->files, address);
    if (mapping == NULL) {
        return false;
    }
    rec_string path = h->import->b->modules.items[mapping->module].path;
    const char *text = string_table_get(&h->import->b->strings, path);
    const char *name = path_file_name(text);
    return strncmp(name, "libjemalloc", 11) == 0 || strncmp(name, "libtcmalloc", 11) == 0;
}

static void finish_entry(struct heap_text *h, const struct entry *entry)
{
    const uint64_t *addresses = entry->count > 0 ? h->addresses.items + entry->first : NULL;
    uint32_t inner = 0;
    uint32_t node = 0;
    while (inner + 1 < entry->count && is_of_allocator(h, addresses[inner])) {
        inner++;
    }
    for (uint32_t i = entry->count; i > inner; i--) {
        node = import_node(h->import, node, find_frame(h, addresses[i - 1]));
    }
    const uint32_t row = import_row(h->import, entry->thread, node);
    import_require(h->import, import_count(h->import, row, &entry->counts),
                   "the sums are more than possible");
}

static void finish_recording(struct heap_text *h)
{
    struct import *import = h->import;
    struct recording_builder *b = import->b;
    mapped_files_sort(&h->files);
    for (size_t i = 0; i < h->entries.len; i++) {
        finish_entry(h, &h->entries.items[i]);
        import_check_memory(import, used_bytes(h));
    }
    recording_builder_sum(b);
    b->meta.unknown |= h->has_all ? 0 : REC_UNKNOWN_ALLOCATIONS;
    b->meta.unknown &= ~(uint32_t)(h->is_jemalloc ? REC_UNKNOWN_THREADS : 0);
    if (h->period_bytes > 1) {
        import_note_sampling(import, h->period_bytes);
    }
    if (import->in->is_cut || !h->is_in_maps) {
        (void)snprintf(import->damage, sizeof(import->damage),
                       "it ends after line %" PRIu64 ", before or within its list of libraries",
                       import->in->line_number - import->in->is_line_cut); // fits
    }
}

static void read_heap_text(struct import *import, void *state)
{
    struct heap_text *h = state;
    struct bytes line;
    h->import = import;
    while (import_next_line(import, &line)) {
        read_line(h, line);
        if (import->in->line_number % 1024 == 0) {
            import_check_memory(import, used_bytes(h));
        }
    }
    finish_recording(h);
}

static bool recognizes_heap_text(struct bytes head)
{
    uint64_t period;
    return take_text(&head, "heap profile:") ||
           (take_text(&head, "heap_v2/") && take_number(&head, 10, &period));
}

const struct importer importer_heap_text = {
    .name = "heap profile",
    .phrase = "reading the heap profile",
    .unknown = REC_UNKNOWN_TEMPORARY | REC_UNKNOWN_PEAK | REC_UNKNOWN_OWN_PEAK | REC_UNKNOWN_TIME |
               REC_UNKNOWN_LIFETIMES | REC_UNKNOWN_THREADS,
    .recognizes = recognizes_heap_text,
    .state_bytes = sizeof(struct heap_text),
    .release = release_heap_text,
    .read = read_heap_text,
};
