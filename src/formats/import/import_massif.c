// SPDX-License-Identifier: MIT
// import_massif: massif.out files of Valgrind's massif, and of cairn export --to massif.
//
//   desc: ... / cmd: ... / time_unit: i|B|ms, then for each snapshot
//   snapshot= time= mem_heap_B= mem_heap_extra_B= mem_stacks_B= heap_tree=empty|detailed|peak
//    n2: 4096 0x4F2: grow (vec.h:31)           as deep as it is indented; its callers follow
//
// Known figures: the live bytes of each stack at the peak, from the tree marked as the peak (or the
// largest tree), and, without stacks, the live bytes at each snapshot and at the end. With a time
// in milliseconds the snapshots become time slices. The growth or shrinkage of the whole heap
// between two snapshots counts as allocated or freed there by the row without a stack. The numbers
// of blocks and all other allocations and frees are unknown. massif has one line for all places
// below its threshold; it becomes a frame with that text.
#include <inttypes.h>
#include <stdio.h>

#include "base/minmax.h"
#include "formats/import/foreign_places.h"
#include "formats/import/import_formats.h"

enum {
    DEPTH_MAX = 1 << 16,
    SLICES_MAX = 1024,
    CHECK_INTERVAL = 1024, // snapshots between checks of the memory
};

// A node of the current tree whose callers are not all read.
struct level {
    uint64_t bytes; // its bytes less those of the callers so far
    uint32_t frame; // REC_NONE for the first node: all allocation functions
};

DEFINE_VEC(level_vec, struct level);

struct snapshot {
    uint64_t time;
    uint64_t heap_bytes;
};

DEFINE_VEC(snapshot_vec, struct snapshot);

struct massif {
    struct import *import;   // borrowed
    struct map_u64 frame_of; // owned; by a text of foreign_places.h
    struct level_vec levels; // owned
    uint32_t thread;
    bool is_ms;
    bool has_peak;                 // a tree was marked as the peak
    bool is_wanted;                // the current tree is kept
    struct snapshot snapshot;      // the current one
    struct snapshot_vec snapshots; // owned; all, in file order
    uint64_t grown_bytes;          // sum of the growth between snapshots
    uint64_t peak_bytes;           // bytes of the kept tree
    uint64_t peak_time;
};

static void release_massif(void *state)
{
    struct massif *m = state;
    map_u64_release(&m->frame_of);
    level_vec_release(&m->levels);
    snapshot_vec_release(&m->snapshots);
}

// End the innermost level: bytes that its callers do not explain are its own. Levels extend from
// the allocating function outwards, so the node is found from the outer end.
static void leave_level(struct massif *m)
{
    struct recording_builder *b = m->import->b;
    struct level level = m->levels.items[m->levels.len - 1];
    uint32_t node = 0;
    for (size_t i = m->levels.len; i > 0 && level.bytes > 0; i--) {
        uint32_t frame = m->levels.items[i - 1].frame;
        node = frame != REC_NONE ? import_node(m->import, node, frame) : node;
    }
    m->levels.len--;
    if (level.bytes > 0) {
        const uint32_t row = import_row(m->import, m->thread, node);
        b->rows.items[row].peak_bytes += level.bytes;
        import_check_memory(m->import, 0);
    }
}

// Read " n1: 72704 0x48FA7B9: ??? (in /lib/libstdc++.so.6)".
static void read_tree_line(struct massif *m, struct bytes line)
{
    size_t depth = 0;
    uint64_t callers;
    struct level level = {.frame = REC_NONE};
    for (; depth < line.len && line.data[depth] == ' ' && depth < DEPTH_MAX; depth++) {
    }
    line = (struct bytes){.data = line.data + depth, .len = line.len - depth};
    import_require(m->import,
                   import_take_text(&line, "n") && import_take_number(&line, 10, &callers) &&
                       import_take_text(&line, ": ") &&
                       import_take_number(&line, 10, &level.bytes) && import_take_text(&line, " "),
                   "not a line of a heap tree");
    while (m->levels.len > depth) {
        leave_level(m);
    }
    import_require(m->import, m->levels.len == depth,
                   "the line of the heap tree is deeper than its callee's callers");
    if (depth > 0) {
        struct level *callee = &m->levels.items[depth - 1];
        import_require(m->import, level.bytes <= callee->bytes,
                       "the callers of a function have more bytes than it has itself");
        callee->bytes -= level.bytes;
        level.frame = valgrind_place_frame(&m->frame_of, m->import, line);
    }
    import_need(m->import, level_vec_push(&m->levels, level));
}

static void end_tree(struct massif *m)
{
    while (m->levels.len > 0) {
        leave_level(m);
    }
    m->is_wanted = false;
}

// Begin a tree. It is kept if it is the peak's, or, before the peak's, if it is the largest so far.
static void begin_tree(struct massif *m, bool is_peak)
{
    struct recording_builder *b = m->import->b;
    bool is_larger = m->snapshot.heap_bytes > m->peak_bytes;
    m->is_wanted = is_peak || (!m->has_peak && is_larger);
    m->has_peak |= is_peak;
    if (m->is_wanted) {
        rows_vec_clear(&b->rows); // rows of the previous tree
        map_u64_clear(&b->row_of);
        m->peak_bytes = m->snapshot.heap_bytes;
        m->peak_time = m->snapshot.time;
    }
}

// Add a snapshot. Its time precedes its bytes.
static void add_snapshot(struct massif *m)
{
    size_t count = m->snapshots.len;
    uint64_t before = count > 0 ? m->snapshots.items[count - 1].heap_bytes : 0;
    uint64_t now = m->snapshot.heap_bytes;
    const uint64_t grown_bytes = now > before ? now - before : 0;
    import_require(m->import, !__builtin_add_overflow(m->grown_bytes, grown_bytes, &m->grown_bytes),
                   "the sums are more than possible");
    import_need(m->import, snapshot_vec_push(&m->snapshots, m->snapshot));
    if (m->snapshots.len % CHECK_INTERVAL == 0) {
        import_check_memory(m->import, m->snapshots.cap * sizeof(struct snapshot));
    }
}

static void take_number(struct massif *m, struct bytes *line, uint64_t *out)
{
    import_require(m->import, import_take_number(line, 10, out), "no number");
}

static void read_line(struct massif *m, struct bytes line)
{
    struct rec_meta *meta = &m->import->b->meta;
    bool is_tree = line.len > 0 && (line.data[0] == ' ' || line.data[0] == 'n');
    uint64_t ignored;
    if (is_tree) {
        if (m->is_wanted) {
            read_tree_line(m, line);
        }
        return;
    }
    end_tree(m);
    if (import_take_text(&line, "mem_heap_B=")) {
        take_number(m, &line, &m->snapshot.heap_bytes);
        add_snapshot(m);
    } else if (import_take_text(&line, "time=")) {
        take_number(m, &line, &m->snapshot.time);
    } else if (import_take_text(&line, "heap_tree=")) {
        if (!import_take_text(&line, "empty")) {
            begin_tree(m, import_take_text(&line, "peak"));
        }
    } else if (import_take_text(&line, "snapshot=") ||
               import_take_text(&line, "mem_heap_extra_B=") ||
               import_take_text(&line, "mem_stacks_B=")) {
        take_number(m, &line, &ignored);
    } else if (import_take_text(&line, "cmd: ")) {
        meta->command_line = import_string(m->import, line);
    } else if (import_take_text(&line, "time_unit: ")) {
        m->is_ms = import_take_text(&line, "ms");
    } else {
        import_require(m->import,
                       line.len == 0 || import_take_text(&line, "#") ||
                           import_take_text(&line, "desc:"),
                       "this is not a line of a massif file");
    }
}

// Count a change of the whole heap in a slice. The numbers of calls are unknown; these numbers keep
// frees below allocations.
static void
add_change(struct recording_builder *b, struct rec_cell *cell, uint64_t from, uint64_t to)
{
    struct rec_slice *slice = &b->slices.items[cell->slice];
    cell->allocations += to != from;
    cell->allocated_bytes += to > from ? to - from : 0;
    cell->frees += to < from;
    cell->freed_bytes += to < from ? from - to : 0;
    slice->live_bytes = to;
    slice->live_max_bytes = max_u64(slice->live_max_bytes, to);
}

// Add a cell to its slice.
static void end_cell(struct massif *m, const struct rec_cell *cell)
{
    struct recording_builder *b = m->import->b;
    struct rec_slice *slice = &b->slices.items[cell->slice];
    slice->allocations = cell->allocations;
    slice->allocated_bytes = cell->allocated_bytes;
    slice->frees = cell->frees;
    slice->freed_bytes = cell->freed_bytes;
    import_need(m->import, cells_vec_push(&b->cells, *cell));
}

// Add the snapshots as slices, and as the cells of the row without a stack.
static void add_series(struct massif *m, uint32_t row)
{
    struct recording_builder *b = m->import->b;
    uint64_t end_ms = m->snapshot.time;
    uint64_t bytes = 0;
    struct rec_cell cell = {.row = row};
    uint32_t shift = 0;
    while (end_ms >> shift >= SLICES_MAX) {
        shift++;
    }
    b->slice_ms = UINT64_C(1) << shift;
    import_need(m->import, slices_vec_resize(&b->slices, (size_t)(end_ms >> shift) + 1));
    for (size_t i = 0; i < m->snapshots.len; i++) {
        const struct snapshot *at = &m->snapshots.items[i];
        uint64_t time = min_u64(at->time, end_ms);
        while (cell.slice < time >> shift) { // a time before the previous one counts as equal
            end_cell(m, &cell);
            cell = (struct rec_cell){.row = row, .slice = cell.slice + 1};
            add_change(b, &cell, bytes, bytes);
        }
        add_change(b, &cell, bytes, at->heap_bytes);
        bytes = at->heap_bytes;
    }
    end_cell(m, &cell);
}

// Finish the row without a stack: it has the figures without known stacks, which are the live bytes
// at the end and the series.
static void finish_row(struct massif *m)
{
    struct recording_builder *b = m->import->b;
    const uint32_t row = import_row(m->import, m->thread, 0);
    b->rows.items[row].allocated_bytes = m->snapshot.heap_bytes;
    b->rows.items[row].allocations = m->snapshot.heap_bytes > 0;
    if (!m->is_ms) {
        return;
    }
    add_series(m, row);
    struct rec_row *sum = &b->rows.items[row];
    sum->allocated_bytes = 0;
    sum->allocations = 0;
    for (size_t i = 0; i < b->cells.len; i++) {
        sum->allocations += b->cells.items[i].allocations;
        sum->allocated_bytes += b->cells.items[i].allocated_bytes;
        sum->frees += b->cells.items[i].frees;
        sum->freed_bytes += b->cells.items[i].freed_bytes;
    }
}

static void finish_recording(struct massif *m)
{
    struct import *import = m->import;
    struct recording_builder *b = import->b;
    finish_row(m);
    recording_builder_sum(b);
    b->processes.items[0].peak_bytes = b->totals.peak_bytes;
    if (m->is_ms) {
        b->meta.unknown &= ~(uint32_t)REC_UNKNOWN_TIME;
        b->meta.runtime_ms = m->snapshot.time;
        b->totals.peak_time_ms = m->peak_time;
    }
    if (import->in->is_cut) {
        (void)snprintf(import->damage, sizeof(import->damage),
                       "it ends after line %" PRIu64 ", and the rest is missing",
                       import->in->line_number - 1); // fits
    }
}

static void read_massif(struct import *import, void *state)
{
    struct massif *m = state;
    struct bytes line;
    m->import = import;
    m->thread = import_thread(import, 0, "all threads");
    while (import_next_line(import, &line)) {
        read_line(m, line);
    }
    end_tree(m);
    size_t count = m->snapshots.len; // the last one may be truncated
    m->snapshot = count > 0 ? m->snapshots.items[count - 1] : (struct snapshot){0};
    finish_recording(m);
}

static bool recognizes_massif(struct bytes head)
{
    bool is_desc = import_take_text(&head, "desc:");
    const uint8_t *end = is_desc ? memchr(head.data, '\n', head.len) : NULL;
    struct bytes second = {.data = end,
                           .len = end != NULL ? head.len - (size_t)(end - head.data) : 0};
    return import_take_text(&second, "\ncmd:");
}

const struct importer importer_massif = {
    .name = "massif",
    .phrase = "reading the massif file",
    .unknown = REC_UNKNOWN_ALLOCATIONS | REC_UNKNOWN_TEMPORARY | REC_UNKNOWN_BLOCKS |
               REC_UNKNOWN_OWN_PEAK | REC_UNKNOWN_TIME | REC_UNKNOWN_LIFETIMES |
               REC_UNKNOWN_THREADS,
    .recognizes = recognizes_massif,
    .state_bytes = sizeof(struct massif),
    .release = release_massif,
    .read = read_massif,
};
