// SPDX-License-Identifier: MIT
// rss_split: see the header.
#include "recorder/memory/rss_split.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/minmax.h"

enum {
    PAGE = 4096,
    CHUNK_HEAD = 8, // of glibc's malloc, before the block
    CHUNK_MIN = 32,
    MAPPED_HEAD = 16,       // of a block that has a mapping of its own
    MAPPED_MIN = 128 << 10, // its default minimum size
};

struct splitting {
    const struct rss_process *what;
    const struct memory_areas *map;
    struct rss_piece_vec pieces;
    struct u64_vec bits;      // of all areas that were read
    struct u64_vec bits_from; // by area: its first word in bits, or UINT64_MAX
    size_t pages_left;
    bool is_estimated;
    struct rec_part_vec parts;
    uint64_t requested_bytes;
};

static void splitting_release(struct splitting *s)
{
    rss_piece_vec_release(&s->pieces);
    u64_vec_release(&s->bits);
    u64_vec_release(&s->bits_from);
    rec_part_vec_release(&s->parts);
}

// Return a * b / c without overflow; 0 if c is 0.
static uint64_t share(uint64_t a, uint64_t b, uint64_t c)
{
    return c == 0 ? 0 : (uint64_t)((unsigned __int128)a * b / c);
}

static const struct memory_area *area_of(const struct splitting *s, const struct rss_piece *piece)
{
    return s->map->areas.items + piece->area;
}

// Return the piece that holds `address`, or NULL.
static struct rss_piece *piece_at(const struct splitting *s, uint64_t address)
{
    size_t low = 0;
    size_t high = s->pieces.len;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (s->pieces.items[middle].end <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    struct rss_piece *piece = s->pieces.items + low;
    return low < s->pieces.len && piece->start <= address ? piece : NULL;
}

// Return the heap memory of a block of that size, its header included; see malloc.c of glibc.
static struct address_range extent_of(uint64_t address, uint64_t size_bytes)
{
    if (address % PAGE == MAPPED_HEAD && size_bytes >= MAPPED_MIN) {
        return (struct address_range){.start = address - MAPPED_HEAD,
                                      .end = (address + size_bytes + PAGE - 1) &
                                             ~(uint64_t)(PAGE - 1)};
    }
    uint64_t chunk = (size_bytes + CHUNK_HEAD + 15) & ~(uint64_t)15;
    chunk = max_u64(chunk, CHUNK_MIN);
    return (struct address_range){.start = address - CHUNK_HEAD,
                                  .end = address - CHUNK_HEAD + chunk};
}

// Call `visit` for each live block within a piece. A sampled block counts for all blocks that it
// stands for, as if they were beside it.
static void each_block(struct splitting *s,
                       void (*visit)(struct splitting *s,
                                     struct rss_piece *piece,
                                     uint64_t address,
                                     const struct live_block *block))
{
    struct live_map_position position = {0};
    struct live_block block;
    uint64_t address;
    struct rss_piece *piece = NULL;
    while (live_map_next(&s->what->process->live, &position, &address, &block)) {
        if (piece == NULL || address < piece->start || address >= piece->end) {
            piece = piece_at(s, address);
        }
        if (piece != NULL) {
            visit(s, piece, address, &block);
        }
    }
}

static void count_block(struct splitting *s,
                        struct rss_piece *piece,
                        uint64_t address,
                        const struct live_block *block)
{
    const struct address_range extent = extent_of(address, block->size_bytes);
    piece->live_count++;
    piece->requested_bytes += block->size_bytes << block->shift;
    piece->extent_bytes += (extent.end - extent.start) << block->shift;
    s->requested_bytes += block->size_bytes << block->shift;
    s->is_estimated = s->is_estimated || block->shift != 0;
}

// Memory with live blocks is heap, whatever its shape.
static void find_heap(struct splitting *s)
{
    each_block(s, count_block);
    for (size_t i = 0; i < s->pieces.len; i++) {
        struct rss_piece *piece = s->pieces.items + i;
        if (piece->live_count > 0 && piece->kind != REC_PART_OWN) {
            piece->kind = REC_PART_KEPT;
            piece->node = REC_NONE;
        }
    }
}

static bool bit_is_set(const uint64_t *bits, uint64_t at)
{
    return (bits[at / 64] >> at % 64 & 1) != 0;
}

// Return how many of the bits [from, to) are set.
static uint64_t count_bits(const uint64_t *bits, uint64_t from, uint64_t to)
{
    uint64_t count = 0;
    while (from < to && from % 64 != 0) {
        count += bit_is_set(bits, from++);
    }
    for (; from + 64 <= to; from += 64) {
        count += (uint64_t)__builtin_popcountll(bits[from / 64]);
    }
    while (from < to) {
        count += bit_is_set(bits, from++);
    }
    return count;
}

// Return the bytes of [start, end) on resident pages; the range is within the area of `bits`.
static uint64_t
resident_bytes(const uint64_t *bits, uint64_t area_start, uint64_t start, uint64_t end)
{
    if (start >= end) {
        return 0;
    }
    const uint64_t first = (start - area_start) / PAGE;
    const uint64_t last = (end - 1 - area_start) / PAGE;
    uint64_t bytes = count_bits(bits, first, last + 1) * PAGE;
    if (bit_is_set(bits, first)) {
        bytes -= (start - area_start) % PAGE;
    }
    if (bit_is_set(bits, last)) {
        bytes -= PAGE - 1 - (end - 1 - area_start) % PAGE;
    }
    return bytes;
}

static const uint64_t *bits_of(const struct splitting *s, const struct rss_piece *piece)
{
    const uint64_t from = s->bits_from.items[piece->area];
    return from != UINT64_MAX ? s->bits.items + from : NULL;
}

static uint64_t
resident_in_piece(const struct splitting *s, const struct rss_piece *piece, struct address_range of)
{
    const uint64_t start = max_u64(of.start, piece->start);
    const uint64_t end = min_u64(of.end, piece->end);
    return resident_bytes(bits_of(s, piece), area_of(s, piece)->start, start, end);
}

static void measure_block(struct splitting *s,
                          struct rss_piece *piece,
                          uint64_t address,
                          const struct live_block *block)
{
    if (piece->kind != REC_PART_KEPT || bits_of(s, piece) == NULL) {
        return;
    }
    const struct address_range own = {.start = address, .end = address + block->size_bytes};
    const struct address_range extent = extent_of(address, block->size_bytes);
    piece->live_bytes += resident_in_piece(s, piece, own) << block->shift;
    piece->occupied_bytes += resident_in_piece(s, piece, extent) << block->shift;
}

// Read which pages of an area are resident. Without an answer its pieces are estimated.
static enum err read_pages(struct splitting *s, size_t index)
{
    const struct memory_area *area = s->map->areas.items + index;
    const size_t pages = (size_t)((area->end - area->start) / PAGE);
    const size_t words = (pages + 63) / 64;
    const size_t from = s->bits.len;
    const struct page_source *source = &s->what->pages;
    if (area->rss_bytes == 0) {
        return ERR_OK;
    }
    if (source->read != NULL && pages <= s->pages_left) {
        s->pages_left -= pages;
        TRY(u64_vec_resize(&s->bits, from + words));
        if (source->read(source->context, area->start / PAGE, pages, s->bits.items + from)) {
            s->bits_from.items[index] = from;
            return ERR_OK;
        }
        s->bits.len = from;
    }
    s->is_estimated = true;
    return ERR_OK;
}

// Give the remainder (of rounding, or of changes between reading the map and the pages) to the
// largest of the pieces [first, end), and what exceeds its size to the others: no piece exceeds its
// size.
static void give_rest(
    struct splitting *s, size_t first, size_t end, struct rss_piece *largest, uint64_t rest_bytes)
{
    uint64_t given = min_u64(rest_bytes, largest->end - largest->start - largest->rss_bytes);
    largest->rss_bytes += given;
    for (size_t i = first; i < end; i++) {
        struct rss_piece *piece = s->pieces.items + i;
        const uint64_t room = piece->end - piece->start - piece->rss_bytes;
        const uint64_t more = min_u64(rest_bytes - given, room);
        piece->rss_bytes += more;
        given += more;
    }
    largest->rss_bytes += rest_bytes - given; // the kernel reports more than the area's size
}

// Give the pieces [first, end) of one area their shares of it.
static void share_out(struct splitting *s, size_t first, size_t end)
{
    const struct memory_area *area = area_of(s, s->pieces.items + first);
    const uint64_t *bits = bits_of(s, s->pieces.items + first);
    uint64_t total = 0;
    struct rss_piece *largest = s->pieces.items + first;
    for (size_t i = first; i < end; i++) {
        struct rss_piece *piece = s->pieces.items + i;
        const uint64_t from = (piece->start - area->start) / PAGE;
        const uint64_t to = (piece->end - area->start) / PAGE;
        piece->rss_bytes = bits != NULL ? count_bits(bits, from, to) : to - from;
        total += piece->rss_bytes;
        largest = piece->rss_bytes > largest->rss_bytes ? piece : largest;
    }
    uint64_t given = 0;
    for (size_t i = first; i < end; i++) {
        struct rss_piece *piece = s->pieces.items + i;
        piece->rss_bytes = min_u64(share(area->rss_bytes / PAGE, piece->rss_bytes, total) * PAGE,
                                   piece->end - piece->start);
        given += piece->rss_bytes;
    }
    largest->swap_bytes = area->swap_bytes;
    give_rest(s, first, end, largest, area->rss_bytes - given);
}

static enum err measure(struct splitting *s)
{
    for (size_t i = 0; i < s->map->areas.len; i++) {
        TRY(u64_vec_push(&s->bits_from, UINT64_MAX));
    }
    for (size_t first = 0; first < s->pieces.len;) {
        const size_t area = s->pieces.items[first].area;
        size_t end = first;
        bool is_heap = false;
        while (end < s->pieces.len && s->pieces.items[end].area == area) {
            is_heap |= s->pieces.items[end++].kind == REC_PART_KEPT;
        }
        if (is_heap || end - first > 1) {
            TRY(read_pages(s, area));
        }
        share_out(s, first, end);
        first = end;
    }
    each_block(s, measure_block);
    return ERR_OK;
}

static enum err push_part(struct splitting *s,
                          const struct rss_piece *piece,
                          struct rec_part part,
                          struct string_table *strings,
                          const char *path)
{
    part.node = piece->node;
    part.areas = 1;
    TRY(string_table_intern_text(strings, path, &part.path));
    return rec_part_vec_push(&s->parts, part);
}

// Return the kind of a heap that is only partly in the aggregator.
static const char *unknown_heap(const struct rss_process *what)
{
    const bool is_forked = (what->process->record.flags & REC_PROCESS_FORKED) != 0;
    return is_forked ? "[heap inherited over fork]" : "[unrecorded heap]";
}

// Split the allocator's piece into live, rounding and kept.
static enum err
push_heap(struct splitting *s, const struct rss_piece *piece, struct string_table *strings)
{
    uint64_t live = piece->live_bytes;
    uint64_t occupied = piece->occupied_bytes;
    bool is_estimate = false;
    const uint64_t *bits = bits_of(s, piece);
    if (bits != NULL) { // pages that share the kernel's zero page are present, but not resident
        const struct address_range all = {.start = piece->start, .end = piece->end};
        const uint64_t there = resident_in_piece(s, piece, all);
        live = there > piece->rss_bytes ? share(live, piece->rss_bytes, there) : live;
        occupied = there > piece->rss_bytes ? share(occupied, piece->rss_bytes, there) : occupied;
    } else if (piece->rss_bytes > 0) {
        is_estimate = true;
        live = piece->requested_bytes;
        occupied = piece->extent_bytes;
    }
    live = min_u64(live, piece->rss_bytes);
    occupied = min_u64(occupied, piece->rss_bytes);
    occupied = max_u64(occupied, live);
    const bool is_known = s->what->is_heap_known;
    const uint64_t size_bytes = piece->end - piece->start;
    const uint64_t spare_bytes =
        size_bytes > piece->extent_bytes ? size_bytes - piece->extent_bytes : 0;
    const uint64_t rounding_bytes = piece->extent_bytes - piece->requested_bytes;
    // More of it is resident than the blocks leave room for: the program ran on after its map was
    // read, and the pages of some blocks were not seen.
    if (piece->rss_bytes - occupied > spare_bytes) {
        occupied = piece->rss_bytes - spare_bytes;
        live = occupied - live > rounding_bytes ? occupied - rounding_bytes : live;
        is_estimate = true;
    }
    TRY(push_part(s, piece,
                  (struct rec_part){.kind = REC_PART_LIVE,
                                    .is_estimate = is_estimate,
                                    .virtual_bytes = piece->requested_bytes,
                                    .rss_bytes = live},
                  strings, piece->path));
    TRY(push_part(s, piece,
                  (struct rec_part){.kind = REC_PART_ROUNDING,
                                    .is_estimate = 1,
                                    .virtual_bytes = rounding_bytes,
                                    .rss_bytes = occupied - live},
                  strings, piece->path));
    // The free part of an inherited heap, and of one that is not recorded, is unknown.
    return push_part(s, piece,
                     (struct rec_part){.kind = is_known ? REC_PART_KEPT : REC_PART_REST,
                                       .is_estimate = 1,
                                       .virtual_bytes = spare_bytes,
                                       .rss_bytes = piece->rss_bytes - occupied,
                                       .swap_bytes = piece->swap_bytes},
                     strings, is_known ? piece->path : unknown_heap(s->what));
}

static int compare_parts(const void *left, const void *right)
{
    const struct rec_part *a = left;
    const struct rec_part *b = right;
    if (a->kind != b->kind) {
        return a->kind < b->kind ? -1 : 1;
    }
    if (a->path != b->path) {
        return a->path < b->path ? -1 : 1;
    }
    return a->node < b->node ? -1 : a->node > b->node;
}

// Merge parts of one kind, name and stack.
static void merge_parts(struct rec_part_vec *parts)
{
    size_t kept = 0;
    if (parts->len > 1) {
        qsort(parts->items, parts->len, sizeof(parts->items[0]), compare_parts);
    }
    for (size_t i = 0; i < parts->len; i++) {
        struct rec_part *last = kept > 0 ? parts->items + kept - 1 : NULL;
        const struct rec_part *part = parts->items + i;
        if (last == NULL || compare_parts(last, part) != 0) {
            parts->items[kept++] = *part;
            continue;
        }
        last->areas += part->areas;
        last->is_estimate |= part->is_estimate;
        last->virtual_bytes += part->virtual_bytes;
        last->rss_bytes += part->rss_bytes;
        last->swap_bytes += part->swap_bytes;
    }
    parts->len = kept;
}

static enum err make_parts(struct splitting *s, struct string_table *strings)
{
    for (size_t i = 0; i < s->pieces.len; i++) {
        const struct rss_piece *piece = s->pieces.items + i;
        if (piece->kind == REC_PART_KEPT) {
            TRY(push_heap(s, piece, strings));
            continue;
        }
        // Irrelevant: memory of libc and the kernel without pages.
        const bool is_empty = piece->rss_bytes == 0 && piece->swap_bytes == 0;
        if (is_empty && piece->kind != REC_PART_MAPPED && piece->kind != REC_PART_FILE) {
            continue;
        }
        TRY(push_part(s, piece,
                      (struct rec_part){.kind = piece->kind,
                                        .virtual_bytes = piece->end - piece->start,
                                        .rss_bytes = piece->rss_bytes,
                                        .swap_bytes = piece->swap_bytes},
                      strings, piece->path));
    }
    merge_parts(&s->parts);
    return ERR_OK;
}

static void add_up(const struct splitting *s, struct rec_memory_snapshot *snapshot)
{
    uint64_t *const by_kind[REC_PART_KINDS + 1] = {[REC_PART_LIVE] = &snapshot->live_bytes,
                                                   [REC_PART_ROUNDING] = &snapshot->rounding_bytes,
                                                   [REC_PART_KEPT] = &snapshot->kept_bytes,
                                                   [REC_PART_MAPPED] = &snapshot->mapped_bytes,
                                                   [REC_PART_STACK] = &snapshot->stack_bytes,
                                                   [REC_PART_FILE] = &snapshot->file_bytes,
                                                   [REC_PART_SHARED] = &snapshot->shared_bytes,
                                                   [REC_PART_OWN] = &snapshot->own_bytes,
                                                   [REC_PART_REST] = &snapshot->rest_bytes};
    for (size_t i = 0; i < s->parts.len; i++) {
        const struct rec_part *part = s->parts.items + i;
        *by_kind[part->kind] += part->rss_bytes;
        snapshot->rss_bytes += part->rss_bytes;
        snapshot->swap_bytes += part->swap_bytes;
    }
    snapshot->requested_bytes = s->requested_bytes;
    snapshot->flags |= s->is_estimated ? REC_SNAPSHOT_ESTIMATED : 0;
}

enum err rss_split(const struct rss_process *what,
                   const struct memory_areas *map,
                   uint32_t index,
                   struct string_table *strings,
                   struct rec_memory_snapshot *snapshot,
                   struct rec_part_vec *parts)
{
    CLEANUP(splitting_release)
    struct splitting s = {.what = what, .map = map, .pages_left = RSS_SPLIT_PAGES_MAX};
    TRY(rss_pieces_cut(what, map, &s.pieces));
    find_heap(&s);
    TRY(measure(&s));
    TRY(make_parts(&s, strings));
    TRY(rec_part_vec_reserve(parts, s.parts.len));
    for (size_t i = 0; i < s.parts.len; i++) {
        s.parts.items[i].snapshot = index;
        parts->items[parts->len++] = s.parts.items[i];
    }
    add_up(&s, snapshot);
    return ERR_OK;
}
