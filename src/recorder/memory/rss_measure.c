// SPDX-License-Identifier: MIT
#include "recorder/memory/rss_measure.h"

#include "base/compiler.h"
#include "base/minmax.h"
#include "base/search.h"
#include "recorder/release/block_extent.h"

enum {
    PAUSE_STEPS = 1024,   // a millisecond of work
    CHANGED_DIVISOR = 16, // of blocks: while fewer changed, the split holds
};

#define SEARCHED_BYTES_MIN ((uint64_t)1 << 20) // of sparse pages

void rss_measure_release(struct rss_measure *s)
{
    rss_piece_vec_release(&s->pieces);
    resident_pages_release(&s->pages);
    survivors_release(&s->survivors);
    survivor_list_release(&s->survivor_list);
}

const struct memory_area *rss_measure_area(const struct rss_measure *s,
                                           const struct rss_piece *piece)
{
    return s->map->areas.items + piece->area;
}

// Return the piece that holds `address`, or NULL.
static struct rss_piece *piece_at(const struct rss_measure *s, uint64_t address)
{
    const size_t first = FIRST_WHERE(at, s->pieces.len, s->pieces.items[at].end > address);
    struct rss_piece *piece = s->pieces.items + first;
    return first < s->pieces.len && piece->start <= address ? piece : NULL;
}

// Whether a block may reach from a piece into the next one. The kernel cuts a mapping where its
// parts differ, as after madvise. Blocks do not overlap: a walk crosses each border once at most.
static bool is_continued(const struct rss_measure *s, const struct rss_piece *piece)
{
    const struct rss_piece *next = piece + 1;
    return s->spans_left > 0 && next < s->pieces.items + s->pieces.len &&
           next->start == piece->end && next->path[0] == piece->path[0] &&
           (next->kind == REC_PART_KEPT || next->kind == REC_PART_REST);
}

static void visit_block(void *context, const struct listed_block *block)
{
    struct rss_measure *s = context;
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
static void each_block(struct rss_measure *s, block_visit *visit)
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
count_block(struct rss_measure *s, struct rss_piece *piece, const struct listed_block *block)
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
static enum err find_heap(struct rss_measure *s)
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

bool rss_measure_has_pages(const struct rss_measure *s, const struct rss_piece *piece)
{
    return resident_pages_are_known(&s->pages, piece->area);
}

uint64_t rss_measure_resident_bytes(const struct rss_measure *s,
                                    const struct rss_piece *piece,
                                    struct address_range of)
{
    const struct address_range range = within(piece, of);
    return resident_pages_bytes(&s->pages, piece->area, range.start, range.end);
}

static void
measure_block(struct rss_measure *s, struct rss_piece *piece, const struct listed_block *block)
{
    if (piece->kind != REC_PART_KEPT || !rss_measure_has_pages(s, piece)) {
        return;
    }
    const uint64_t address = block->address;
    const struct address_range own = {.start = address, .end = address + block->size_bytes};
    const struct address_range extent = block_extent_of(address, block->size_bytes);
    piece->live_bytes += rss_measure_resident_bytes(s, piece, own) * block->weight;
    piece->occupied_bytes += rss_measure_resident_bytes(s, piece, extent) * block->weight;
    survivors_count(&s->survivors, piece->area, within(piece, own));
    const struct address_range kept = release_span_of(piece->rule, address, block->size_bytes);
    survivors_pin(&s->survivors, piece->area, within(piece, kept));
}

static enum release_rule rule_of(const struct rss_measure *s, rec_string module)
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
static bool is_allocators_own(const struct rss_measure *s, const struct rss_piece *piece)
{
    return piece->live_count == 0 && s->what->had_blocks != NULL &&
           !s->what->had_blocks(s->what->context,
                                (struct address_range){.start = piece->start, .end = piece->end});
}

// Find what a release would return of the pieces, all of whose blocks are known. malloc_trim does
// not return the top of an arena for threads.
static void find_released(struct rss_measure *s)
{
    for (size_t i = 0; s->what->is_heap_known && i < s->pieces.len; i++) {
        struct rss_piece *piece = s->pieces.items + i;
        if (piece->kind != REC_PART_KEPT || !rss_measure_has_pages(s, piece) ||
            is_allocators_own(s, piece)) {
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
static void set_rules(struct rss_measure *s)
{
    for (size_t i = 0; i < s->pieces.len; i++) {
        struct rss_piece *piece = s->pieces.items + i;
        if (piece->kind != REC_PART_KEPT || !rss_measure_has_pages(s, piece)) {
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

void rss_measure_pause(const struct rss_measure *s, size_t step)
{
    if (step % PAUSE_STEPS == PAUSE_STEPS - 1 && s->what->pause != NULL) {
        (void)s->what->pause(s->what->context); // no block is visited
    }
}

// Count what the allocator of a process says is free: all of it, and the whole pages of it.
static void measure_free(struct rss_measure *s)
{
    const struct address_range_vec *ranges = &s->what->foreign->free;
    for (size_t i = 0; i < ranges->len; i++) {
        rss_measure_pause(s, i);
        const struct address_range range = ranges->items[i];
        struct rss_piece *piece = piece_at(s, range.start);
        if (piece == NULL || piece->kind != REC_PART_KEPT || !rss_measure_has_pages(s, piece)) {
            continue;
        }
        const struct address_range pages = foreign_heap_whole_pages(range);
        const uint64_t page_bytes =
            pages.start < pages.end ? rss_measure_resident_bytes(s, piece, pages) : 0;
        piece->free_bytes += rss_measure_resident_bytes(s, piece, range);
        piece->released_bytes += foreign_heap_is_top(s->what->foreign, range) ? 0 : page_bytes;
        s->sparse.empty_bytes += page_bytes;
    }
}

// Return the end of the pieces of one area, and whether its pages say how to divide it.
static size_t end_of_area(const struct rss_measure *s, size_t first, bool *out_needs_pages)
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

static enum err want_pages(struct rss_measure *s)
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
static enum err find_pieces(struct rss_measure *s)
{
    rss_piece_vec_clear(&s->pieces);
    s->requested_bytes = 0;
    TRY(rss_pieces_cut(s->what, s->map, &s->pieces));
    return find_heap(s);
}

// Read which pages are resident. If events were counted meanwhile, the blocks are others now.
static enum err read_pages(struct rss_measure *s)
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

enum err rss_measure_run(struct rss_measure *s)
{
    s->walk = (struct listed_walk){.visit = visit_block,
                                   .context = s,
                                   .pause = s->what->pause,
                                   .pause_context = s->what->context,
                                   .changed_count = s->what->listed_changes};
    TRY(find_pieces(s));
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

static void
note_survivor(struct rss_measure *s, struct rss_piece *piece, const struct listed_block *block)
{
    const uint64_t address = block->address;
    if (piece->kind != REC_PART_KEPT || !rss_measure_has_pages(s, piece) || s->err != ERR_OK ||
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

bool rss_measure_is_fill_known(const struct rss_measure *s)
{
    return !s->is_estimated && s->walk.changed_count <= s->walk.block_count / CHANGED_DIVISOR;
}

enum err
rss_measure_survivors(struct rss_measure *s, uint32_t index, struct rec_survivor_vec *survivors)
{
    const uint64_t empty_bytes = s->what->is_heap_known ? 0 : s->sparse.empty_bytes; // measure_free
    for (size_t i = 0; i < s->pieces.len; i++) {
        const struct rss_piece *piece = s->pieces.items + i;
        if (piece->kind == REC_PART_KEPT && rss_measure_has_pages(s, piece)) {
            const struct address_range all = {.start = piece->start, .end = piece->end};
            survivors_sum(&s->survivors, piece->area, all, &s->sparse);
        }
    }
    if (!rss_measure_is_fill_known(s) || !s->what->is_heap_known) {
        s->sparse = (struct sparse_pages){.empty_bytes = empty_bytes};
    }
    if (s->sparse.sparse_bytes < SEARCHED_BYTES_MIN) {
        return ERR_OK;
    }
    each_block(s, note_survivor);
    TRY(s->err);
    return s->walk.is_gone ? ERR_OK : survivor_list_append_top(&s->survivor_list, index, survivors);
}
