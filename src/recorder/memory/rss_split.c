// SPDX-License-Identifier: MIT
#include "recorder/memory/rss_split.h"

#include <string.h>

#include "aggregate/books/listed_walk.h"
#include "base/compiler.h"
#include "base/hash.h"
#include "base/minmax.h"
#include "base/order.h"
#include "base/search.h"
#include "host/memory/page_size.h"
#include "host/os/file.h"
#include "recorder/release/block_extent.h"

enum {
    RECENT_PARTS = 256,
    PAUSE_STEPS = 1024,   // a millisecond of work
    CHANGED_DIVISOR = 16, // of blocks: while fewer changed, the split holds
};

#define SEARCHED_BYTES_MIN ((uint64_t)1 << 20) // of sparse pages

void rss_tables_release(struct rss_tables *tables)
{
    rec_part_vec_release(&tables->parts);
    rec_survivor_vec_release(&tables->survivors);
    shared_claim_vec_release(&tables->claims);
}

enum err rss_tables_append(struct rss_tables *tables, const struct rss_tables *more, uint32_t first)
{
    TRY(rec_part_vec_reserve(&tables->parts, more->parts.len));
    TRY(rec_survivor_vec_reserve(&tables->survivors, more->survivors.len));
    for (size_t i = 0; i < more->parts.len; i++) {
        struct rec_part part = more->parts.items[i];
        part.snapshot += first;
        tables->parts.items[tables->parts.len++] = part;
    }
    for (size_t i = 0; i < more->survivors.len; i++) {
        struct rec_survivor survivor = more->survivors.items[i];
        survivor.snapshot += first;
        tables->survivors.items[tables->survivors.len++] = survivor;
    }
    return ERR_OK;
}

// A part, and the file whose pages it shares with other processes.
struct split_part {
    struct rec_part part;
    struct shared_claim claim;
};

DEFINE_VEC(split_part_vec, struct split_part);

struct splitting;

typedef void
block_visit(struct splitting *s, struct rss_piece *piece, const struct listed_block *block);

struct splitting {
    const struct rss_process *what;
    const struct memory_areas *map;
    struct rss_piece_vec pieces;
    struct resident_pages pages;
    struct survivors survivors;
    struct survivor_list survivor_list;
    struct listed_walk walk;  // of the blocks
    block_visit *visit;       // of a walk
    struct rss_piece *latest; // of the block before; NULL: none
    size_t spans_left;        // of a walk: pieces that blocks reach into
    enum err err;             // of a visit to a block
    bool is_estimated;
    bool is_answered; // an allocator said what it keeps
    struct split_part_vec parts;
    uint32_t recent[RECENT_PARTS]; // by hash: 1 + index in parts
    uint64_t requested_bytes;
    struct sparse_pages sparse;
};

static void splitting_release(struct splitting *s)
{
    rss_piece_vec_release(&s->pieces);
    resident_pages_release(&s->pages);
    survivors_release(&s->survivors);
    survivor_list_release(&s->survivor_list);
    split_part_vec_release(&s->parts);
}

static const struct memory_area *area_of(const struct splitting *s, const struct rss_piece *piece)
{
    return s->map->areas.items + piece->area;
}

// Return the piece that holds `address`, or NULL.
static struct rss_piece *piece_at(const struct splitting *s, uint64_t address)
{
    const size_t first = FIRST_WHERE(at, s->pieces.len, s->pieces.items[at].end > address);
    struct rss_piece *piece = s->pieces.items + first;
    return first < s->pieces.len && piece->start <= address ? piece : NULL;
}

// Whether a block may reach from a piece into the next one. The kernel cuts a mapping where its
// parts differ, as after madvise. Blocks do not overlap: a walk crosses each border once at most.
static bool is_continued(const struct splitting *s, const struct rss_piece *piece)
{
    const struct rss_piece *next = piece + 1;
    return s->spans_left > 0 && next < s->pieces.items + s->pieces.len &&
           next->start == piece->end && next->path[0] == piece->path[0] &&
           (next->kind == REC_PART_KEPT || next->kind == REC_PART_REST);
}

static void visit_block(void *context, const struct listed_block *block)
{
    struct splitting *s = context;
    const uint64_t address = block->address;
    struct rss_piece *piece = s->latest;
    if (piece == NULL || address < piece->start || address >= piece->end) {
        piece = piece_at(s, address);
    }
    s->latest = piece;
    if (piece == NULL) {
        return;
    }
    s->visit(s, piece, block);
    const uint64_t end = address + block->size_bytes;
    while (end > piece->end && is_continued(s, piece)) {
        s->spans_left--;
        s->visit(s, ++piece, block);
    }
}

// Call `visit` for each piece that a live block is in.
static void each_block(struct splitting *s, block_visit *visit)
{
    s->visit = visit;
    s->latest = NULL;
    s->spans_left = s->pieces.len;
    s->walk.block_count = 0;
    listed_walk_run(&s->walk, s->what->listed);
}

static struct address_range within(const struct rss_piece *piece, struct address_range range)
{
    const uint64_t start = max_u64(range.start, piece->start);
    return (struct address_range){.start = start,
                                  .end = max_u64(start, min_u64(range.end, piece->end))};
}

static bool begins_in(const struct rss_piece *piece, uint64_t address)
{
    return address >= piece->start;
}

// Return how much of a block's range counts for a piece. A header before the first one does.
static uint64_t bytes_in(const struct rss_piece *piece, uint64_t address, struct address_range of)
{
    const uint64_t start = begins_in(piece, address) ? of.start : piece->start;
    return excess_u64(min_u64(of.end, piece->end), start);
}

static void
count_block(struct splitting *s, struct rss_piece *piece, const struct listed_block *block)
{
    const uint64_t address = block->address;
    const struct address_range own = {.start = address, .end = address + block->size_bytes};
    const uint64_t weight = block->weight;
    piece->live_count++;
    piece->apart_count += block_is_apart(address, block->size_bytes);
    const struct address_range extent = block_extent_of(address, block->size_bytes);
    piece->requested_bytes += bytes_in(piece, address, own) * weight;
    piece->extent_bytes += bytes_in(piece, address, extent) * weight;
    s->requested_bytes += begins_in(piece, address) ? block->size_bytes * weight : 0;
    s->is_estimated = s->is_estimated || weight > 1;
}

// Memory with live blocks is heap, whatever its shape.
static enum err find_heap(struct splitting *s)
{
    each_block(s, count_block);
    for (size_t i = 0; i < s->pieces.len; i++) {
        struct rss_piece *piece = s->pieces.items + i;
        if (piece->live_count > 0 && piece->kind != REC_PART_OWN) {
            piece->is_by_blocks = piece->kind != REC_PART_KEPT;
            piece->allocator = piece->allocator != 0
                                   ? piece->allocator
                                   : rss_pieces_allocator(s->what, piece, piece->node);
            piece->kind = REC_PART_KEPT;
            piece->node = REC_NONE;
        }
    }
    return ERR_OK;
}

static bool has_pages(const struct splitting *s, const struct rss_piece *piece)
{
    return resident_pages_are_known(&s->pages, piece->area);
}

static uint64_t
resident_in_piece(const struct splitting *s, const struct rss_piece *piece, struct address_range of)
{
    const struct address_range range = within(piece, of);
    return resident_pages_bytes(&s->pages, piece->area, range.start, range.end);
}

static void
measure_block(struct splitting *s, struct rss_piece *piece, const struct listed_block *block)
{
    if (piece->kind != REC_PART_KEPT || !has_pages(s, piece)) {
        return;
    }
    const uint64_t address = block->address;
    const struct address_range own = {.start = address, .end = address + block->size_bytes};
    const struct address_range extent = block_extent_of(address, block->size_bytes);
    piece->live_bytes += resident_in_piece(s, piece, own) * block->weight;
    piece->occupied_bytes += resident_in_piece(s, piece, extent) * block->weight;
    survivors_count(&s->survivors, piece->area, within(piece, own));
    const struct address_range kept = release_span_of(piece->rule, address, block->size_bytes);
    survivors_pin(&s->survivors, piece->area, within(piece, kept));
}

static enum release_rule rule_of(const struct splitting *s, rec_string module)
{
    const struct string_table *strings = &s->what->aggregator->strings;
    const struct rec_hook_vec *hooks = s->what->hooks;
    const char *allocator = "";
    for (size_t i = 0; hooks != NULL && i < hooks->len; i++) {
        const struct rec_hook *hook = hooks->items + i;
        allocator = hook->module == module && hook->allocator != 0
                        ? string_table_get(strings, hook->allocator)
                        : allocator;
    }
    return release_rule_of(allocator, string_table_get(strings, module));
}

// Whether an allocator has a piece for itself, such as tcmalloc its map of pages: no block has ever
// been in it, and a release returns nothing of it.
static bool is_allocators_own(const struct splitting *s, const struct rss_piece *piece)
{
    return piece->live_count == 0 && s->what->had_blocks != NULL &&
           !s->what->had_blocks(s->what->context,
                                (struct address_range){.start = piece->start, .end = piece->end});
}

// Find what a release would return of the pieces, all of whose blocks are known. malloc_trim does
// not return the top of an arena for threads.
static void find_released(struct splitting *s)
{
    for (size_t i = 0; s->what->is_heap_known && i < s->pieces.len; i++) {
        struct rss_piece *piece = s->pieces.items + i;
        if (piece->kind != REC_PART_KEPT || !has_pages(s, piece) || is_allocators_own(s, piece)) {
            continue;
        }
        const struct address_range all = {.start = piece->start, .end = piece->end};
        const struct address_range top = {.start = rss_piece_top(s->what, piece),
                                          .end = piece->end};
        uint64_t end_bytes = 0;
        uint64_t unused;
        piece->released_bytes =
            survivors_releasable_bytes(&s->survivors, piece->area, all, &end_bytes);
        piece->released_bytes -= min_u64(
            end_bytes, survivors_releasable_bytes(&s->survivors, piece->area, top, &unused));
    }
}

// Prepare the pinning: what libc itself has at the start of a heap stays.
static void set_rules(struct splitting *s)
{
    for (size_t i = 0; i < s->pieces.len; i++) {
        struct rss_piece *piece = s->pieces.items + i;
        if (piece->kind != REC_PART_KEPT || !has_pages(s, piece)) {
            continue;
        }
        piece->rule = rule_of(s, piece->allocator);
        if (piece->rule == RELEASE_GLIBC) {
            const struct address_range head = {.start = piece->start,
                                               .end = piece->start + GLIBC_HEAD_BYTES};
            survivors_pin(&s->survivors, piece->area, within(piece, head));
        }
    }
}

static void pause_sometimes(const struct splitting *s, size_t step)
{
    if (step % PAUSE_STEPS == PAUSE_STEPS - 1 && s->what->pause != NULL) {
        (void)s->what->pause(s->what->context); // no block is visited
    }
}

// Count what the allocator of a process says is free: all of it, and the whole pages of it.
static void measure_free(struct splitting *s)
{
    const struct address_range_vec *ranges = &s->what->foreign->free;
    for (size_t i = 0; i < ranges->len; i++) {
        pause_sometimes(s, i);
        const struct address_range range = ranges->items[i];
        struct rss_piece *piece = piece_at(s, range.start);
        if (piece == NULL || piece->kind != REC_PART_KEPT || !has_pages(s, piece)) {
            continue;
        }
        const struct address_range pages = foreign_heap_whole_pages(range);
        const uint64_t page_bytes =
            pages.start < pages.end ? resident_in_piece(s, piece, pages) : 0;
        piece->free_bytes += resident_in_piece(s, piece, range);
        piece->released_bytes += foreign_heap_is_top(s->what->foreign, range) ? 0 : page_bytes;
        s->sparse.empty_bytes += page_bytes;
    }
}

// Return the end of the pieces of one area, and whether its pages say how to divide it.
static size_t end_of_area(const struct splitting *s, size_t first, bool *out_needs_pages)
{
    const size_t area = s->pieces.items[first].area;
    size_t end = first;
    bool is_heap = false;
    while (end < s->pieces.len && s->pieces.items[end].area == area) {
        is_heap |= s->pieces.items[end++].kind == REC_PART_KEPT;
    }
    *out_needs_pages = is_heap || end - first > 1;
    return end;
}

static enum err want_pages(struct splitting *s)
{
    TRY(resident_pages_init(&s->pages, s->map));
    for (size_t first = 0; first < s->pieces.len;) {
        const size_t area = s->pieces.items[first].area;
        bool needs_pages = false;
        bool is_listed = true;
        first = end_of_area(s, first, &needs_pages);
        if (needs_pages && s->map->areas.items[area].rss_bytes > 0) {
            TRY(resident_pages_want(&s->pages, area, &is_listed));
        }
    }
    return ERR_OK;
}

// Cut the map, and find what the allocator has.
static enum err find_pieces(struct splitting *s)
{
    rss_piece_vec_clear(&s->pieces);
    s->requested_bytes = 0;
    TRY(rss_pieces_cut(s->what, s->map, &s->pieces));
    return find_heap(s);
}

// Read which pages are resident. If events were counted meanwhile, the blocks are others now.
static enum err read_pages(struct splitting *s)
{
    TRY(want_pages(s));
    struct page_wants *wants = &s->pages.wants;
    if (s->what->read_pages == NULL) {
        page_wants_read(wants, &s->what->pages);
    } else if (wants->wants.len > 0 && s->what->read_pages(s->what->context, wants)) {
        TRY(find_pieces(s));
    }
    resident_pages_take(&s->pages);
    return ERR_OK;
}

// Without an answer the pieces of an area are estimated.
static enum err measure(struct splitting *s)
{
    TRY(read_pages(s));
    for (size_t first = 0; first < s->pieces.len;) {
        const size_t area = s->pieces.items[first].area;
        bool needs_pages = false;
        const size_t end = end_of_area(s, first, &needs_pages);
        s->is_estimated =
            s->is_estimated || (needs_pages && s->map->areas.items[area].rss_bytes > 0 &&
                                !resident_pages_are_known(&s->pages, area));
        resident_pages_share_out(&s->pages, s->pieces.items + first, end - first);
        first = end;
    }
    TRY(survivors_init(&s->survivors, &s->pages));
    set_rules(s);
    each_block(s, measure_block);
    find_released(s);
    if (s->what->foreign != NULL) {
        measure_free(s);
    }
    s->is_answered = rss_pieces_share_answers(s->what, &s->pieces);
    return ERR_OK;
}

// Return the area whose file a piece belongs to: a .bss counts as the file before it.
static const struct memory_area *file_of(const struct splitting *s, const struct rss_piece *piece)
{
    const struct memory_area *area = area_of(s, piece);
    return piece->area > 0 && piece->path != memory_area_path(s->map, area) ? area - 1 : area;
}

static struct shared_claim
claim_of(const struct splitting *s, const struct rss_piece *piece, const struct rec_part *part)
{
    const struct memory_area *area = area_of(s, piece);
    const struct memory_area *file = file_of(s, piece);
    const uint64_t shared_bytes = share_u64(area->shared_bytes, part->rss_bytes, area->rss_bytes);
    return (struct shared_claim){
        .device = file->device,
        .inode = file->inode,
        .process = s->what->process->index,
        .shared_bytes = shared_bytes,
        .proportional_bytes = share_u64(area->proportional_bytes, part->rss_bytes, area->rss_bytes),
        .private_bytes = part->rss_bytes - shared_bytes,
        .late_bytes = file->inode != 0 ? s->what->late_bytes : 0,
    };
}

static int compare_parts(const void *left, const void *right)
{
    const struct rec_part *a = left;
    const struct rec_part *b = right;
    return order_u64(a->kind, b->kind)
               ?: order_u64(a->path, b->path)
               ?: order_u64(a->node, b->node)
               ?: order_u64(a->allocator, b->allocator);
}

static int compare_split_parts(const void *left, const void *right)
{
    const struct split_part *a = left;
    const struct split_part *b = right;
    return compare_parts(&a->part, &b->part)
               ?: order_u64(a->claim.device, b->claim.device)
               ?: order_u64(a->claim.inode, b->claim.inode);
}

static void add_part(struct rec_part *sum, const struct rec_part *part)
{
    sum->areas += part->areas;
    sum->is_estimate |= part->is_estimate;
    sum->virtual_bytes += part->virtual_bytes;
    sum->rss_bytes += part->rss_bytes;
    sum->swap_bytes += part->swap_bytes;
    sum->released_bytes += part->released_bytes;
    sum->huge_bytes += part->huge_bytes;
    sum->blank_bytes += part->blank_bytes;
}

static void add_split_part(struct split_part *sum, const struct split_part *more)
{
    add_part(&sum->part, &more->part);
    shared_claim_add(&sum->claim, &more->claim);
}

// A map of tens of thousands of areas has few different parts.
static enum err keep_part(struct splitting *s, const struct split_part *part)
{
    const uint64_t key = hash_mix(
        part->part.kind ^ (uint64_t)part->part.path << 8 ^
        hash_mix(part->part.node ^ part->claim.inode << 1 ^ (uint64_t)part->part.allocator << 32));
    uint32_t *recent = s->recent + key % RECENT_PARTS;
    struct split_part *same = *recent != 0 ? s->parts.items + *recent - 1 : NULL;
    if (same != NULL && compare_split_parts(same, part) == 0) {
        add_split_part(same, part);
        return ERR_OK;
    }
    *recent = (uint32_t)s->parts.len + 1;
    return split_part_vec_push(&s->parts, *part);
}

static enum err push_part(struct splitting *s,
                          const struct rss_piece *piece,
                          struct rec_part part,
                          struct string_table *strings,
                          const char *path)
{
    const struct memory_area *area = area_of(s, piece);
    part.node = piece->node;
    part.areas = 1;
    part.huge_bytes = share_u64(area->huge_bytes, part.rss_bytes, area->rss_bytes);
    part.blank_bytes = share_u64(area->blank_bytes, part.rss_bytes, area->rss_bytes);
    part.allocator = piece->allocator;
    TRY(string_table_intern_text(strings, path, &part.path));
    return keep_part(s, &(struct split_part){.part = part, .claim = claim_of(s, piece, &part)});
}

// Whether all that glibc has of a piece are blocks with a mapping of their own. What is beside them
// is not its memory.
static bool has_blocks_alone(const struct splitting *s, const struct rss_piece *piece)
{
    const char *path = string_table_get(&s->what->aggregator->strings, piece->allocator);
    const char *name = path_file_name(path);
    return piece->is_by_blocks && piece->apart_count == piece->live_count &&
           (strncmp(name, "libc.so.", strlen("libc.so.")) == 0 ||
            strncmp(name, "libc-2.", strlen("libc-2.")) == 0);
}

// Return the kind of a heap that is only partly recorded.
static const char *unknown_heap(const struct rss_process *what, const struct rss_piece *piece)
{
    const uint32_t flags = what->process->record.flags;
    if (what->is_heap_known) {
        return "[beside large blocks of glibc]";
    }
    if (piece->is_asked) {
        return string_table_get(&what->aggregator->strings, what->process->earlier_name);
    }
    switch (piece->claim) {
    case HEAP_CLAIM_CHUNKS:
        return what->foreign->is_whole ? "[heap of glibc, allocated before recording]"
                                       : "[heap of glibc, allocated before recording, or free]";
    case HEAP_CLAIM_BLOCKS:
        return "[large blocks of glibc, allocated before recording]";
    case HEAP_CLAIM_NONE:
        break;
    }
    return (flags & REC_PROCESS_FORKED) != 0     ? "[heap inherited over fork]"
           : (flags & REC_PROCESS_ATTACHED) != 0 ? "[allocated before recording, or free]"
                                                 : "[unrecorded heap]";
}

// Split the allocator's piece into live, rounding and kept.
static enum err
push_heap(struct splitting *s, const struct rss_piece *piece, struct string_table *strings)
{
    uint64_t live = piece->live_bytes;
    uint64_t occupied = piece->occupied_bytes;
    bool is_estimate = false;
    if (has_pages(s, piece)) { // of pages that share the kernel's zero page, a part is live
        const struct address_range all = {.start = piece->start, .end = piece->end};
        const uint64_t there = max_u64(resident_in_piece(s, piece, all), piece->rss_bytes);
        live = share_u64(live, piece->rss_bytes, there);
        occupied = share_u64(occupied, piece->rss_bytes, there);
    } else if (piece->rss_bytes > 0) {
        is_estimate = true;
        live = piece->requested_bytes;
        occupied = piece->extent_bytes;
    }
    live = min_u64(live, piece->rss_bytes);
    occupied = min_u64(occupied, piece->rss_bytes);
    occupied = max_u64(occupied, live);
    const bool is_known = s->what->is_heap_known && !has_blocks_alone(s, piece);
    const uint64_t size_bytes = piece->end - piece->start;
    const uint64_t spare_bytes =
        size_bytes > piece->extent_bytes ? size_bytes - piece->extent_bytes : 0;
    const uint64_t rounding_bytes = excess_u64(piece->extent_bytes, piece->requested_bytes);
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
    // The free part of an inherited heap, and of one that is not recorded, is unknown, unless its
    // allocator says what is free.
    const uint64_t other_bytes = piece->rss_bytes - occupied;
    const uint64_t kept_bytes = is_known ? other_bytes : min_u64(piece->free_bytes, other_bytes);
    if (is_known || kept_bytes > 0) {
        TRY(push_part(
            s, piece,
            (struct rec_part){.kind = REC_PART_KEPT,
                              .is_estimate = 1,
                              .virtual_bytes = is_known ? spare_bytes : kept_bytes,
                              .rss_bytes = kept_bytes,
                              .released_bytes = min_u64(piece->released_bytes, kept_bytes),
                              .swap_bytes = is_known ? piece->swap_bytes : 0},
            strings, piece->path));
    }
    const bool is_whole = is_known || (s->what->is_heap_known && other_bytes == 0);
    return is_whole ? ERR_OK
                    : push_part(s, piece,
                                (struct rec_part){.kind = REC_PART_REST,
                                                  .is_estimate = 1,
                                                  .virtual_bytes = spare_bytes -
                                                                   min_u64(spare_bytes, kept_bytes),
                                                  .rss_bytes = other_bytes - kept_bytes,
                                                  .swap_bytes = piece->swap_bytes},
                                strings, unknown_heap(s->what, piece));
}

// Append the parts and their claims; those of one kind, name and stack are one part, and those of
// one file besides one claim.
static enum err append_parts(struct splitting *s, uint32_t index, struct rss_tables *tables)
{
    split_part_vec_sort(&s->parts, compare_split_parts);
    TRY(rec_part_vec_reserve(&tables->parts, s->parts.len));
    TRY(shared_claim_vec_reserve(&tables->claims, s->parts.len));
    for (size_t i = 0; i < s->parts.len; i++) {
        const struct split_part *next = s->parts.items + i;
        if (i > 0 && compare_parts(&next[-1].part, &next->part) == 0) {
            add_part(tables->parts.items + tables->parts.len - 1, &next->part);
        } else {
            tables->parts.items[tables->parts.len] = next->part;
            tables->parts.items[tables->parts.len++].snapshot = index;
        }
        if (i > 0 && compare_split_parts(next - 1, next) == 0) {
            shared_claim_add(tables->claims.items + tables->claims.len - 1, &next->claim);
        } else {
            tables->claims.items[tables->claims.len] = next->claim;
            tables->claims.items[tables->claims.len++].part = (uint32_t)(tables->parts.len - 1);
        }
    }
    return ERR_OK;
}

// Return the name of a piece that is no heap: its file's, or where memory without a name is from.
static const char *name_of(const struct splitting *s,
                           const struct rss_piece *piece,
                           const struct string_table *strings)
{
    const bool is_earlier =
        piece->kind == REC_PART_REST && piece->is_earlier && piece->path[0] == '\0';
    return is_earlier ? string_table_get(strings, s->what->process->earlier_name) : piece->path;
}

static enum err make_parts(struct splitting *s, struct string_table *strings)
{
    for (size_t i = 0; i < s->pieces.len; i++) {
        const struct rss_piece *piece = s->pieces.items + i;
        pause_sometimes(s, i);
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
                      strings, name_of(s, piece, strings)));
    }
    return ERR_OK;
}

static void
note_survivor(struct splitting *s, struct rss_piece *piece, const struct listed_block *block)
{
    const uint64_t address = block->address;
    if (piece->kind != REC_PART_KEPT || !has_pages(s, piece) || s->err != ERR_OK ||
        !begins_in(piece, address)) {
        return;
    }
    const struct address_range own = {.start = address, .end = address + block->size_bytes};
    const uint64_t held_bytes =
        survivors_held_bytes(&s->survivors, piece->area, within(piece, own));
    const struct rec_row_vec *rows = &s->what->aggregator->totals.rows.rows;
    if (held_bytes > 0) {
        s->err =
            survivor_list_add(&s->survivor_list, rows->items[block->row].node, block, held_bytes);
    }
}

// Whether it is known, at least by an estimate, how full each page is.
static bool is_fill_known(const struct splitting *s)
{
    return !s->is_estimated && s->walk.changed_count <= s->walk.block_count / CHANGED_DIVISOR;
}

// Find who keeps sparse pages resident. Healthy heaps have few, and are not searched.
static enum err
find_survivors(struct splitting *s, uint32_t index, struct rec_survivor_vec *survivors)
{
    const uint64_t empty_bytes = s->what->is_heap_known ? 0 : s->sparse.empty_bytes; // measure_free
    for (size_t i = 0; i < s->pieces.len; i++) {
        const struct rss_piece *piece = s->pieces.items + i;
        if (piece->kind == REC_PART_KEPT && has_pages(s, piece)) {
            const struct address_range all = {.start = piece->start, .end = piece->end};
            survivors_sum(&s->survivors, piece->area, all, &s->sparse);
        }
    }
    if (!is_fill_known(s) || !s->what->is_heap_known) {
        s->sparse = (struct sparse_pages){.empty_bytes = empty_bytes};
    }
    if (s->sparse.sparse_bytes < SEARCHED_BYTES_MIN) {
        return ERR_OK;
    }
    each_block(s, note_survivor);
    TRY(s->err);
    return s->walk.is_gone ? ERR_OK : survivor_list_append_top(&s->survivor_list, index, survivors);
}

static void add_up(const struct splitting *s, struct rec_memory_snapshot *snapshot)
{
    for (size_t i = 0; i < s->parts.len; i++) {
        const struct rec_part *part = &s->parts.items[i].part;
        snapshot->bytes[part->kind - 1] += part->rss_bytes;
        snapshot->rss_bytes += part->rss_bytes;
        snapshot->swap_bytes += part->swap_bytes;
    }
    snapshot->requested_bytes = s->requested_bytes;
    // Pages that share the kernel's zero page are present, but count for nothing in RSS.
    snapshot->empty_page_bytes = min_u64(s->sparse.empty_bytes, snapshot->kept_bytes);
    snapshot->sparse_page_bytes = s->sparse.sparse_bytes;
    snapshot->sparse_block_bytes = s->sparse.block_bytes;
    snapshot->flags |= s->is_estimated || s->walk.changed_count > 0 ? REC_SNAPSHOT_ESTIMATED : 0;
    const struct foreign_heap *foreign = s->what->foreign;
    const bool is_whole = foreign == NULL || foreign->is_whole;
    const bool is_foreign_known =
        is_whole && (s->is_answered || (foreign != NULL && foreign->is_read));
    const bool is_released_known = is_fill_known(s) && (s->what->is_heap_known || is_foreign_known);
    snapshot->flags |= is_released_known ? REC_SNAPSHOT_RELEASED : 0;
}

enum err rss_split(const struct rss_process *what,
                   const struct memory_areas *map,
                   uint32_t index,
                   struct string_table *strings,
                   struct rec_memory_snapshot *snapshot,
                   struct rss_tables *tables)
{
    CLEANUP(splitting_release) struct splitting s = {.what = what, .map = map};
    s.walk = (struct listed_walk){.visit = visit_block,
                                  .context = &s,
                                  .pause = what->pause,
                                  .pause_context = what->context,
                                  .changed_count = what->listed_changes};
    TRY(find_pieces(&s));
    TRY(measure(&s));
    TRY(make_parts(&s, strings));
    TRY(find_survivors(&s, index, &tables->survivors));
    TRY(append_parts(&s, index, tables));
    add_up(&s, snapshot);
    return ERR_OK;
}
