// SPDX-License-Identifier: MIT
#include "recorder/memory/resident_pages.h"

#include "base/compiler.h"
#include "base/minmax.h"
#include "host/memory/page_size.h"
#include "recorder/memory/rss_pieces.h"

enum err resident_pages_init(struct resident_pages *pages, const struct memory_areas *map)
{
    *pages = (struct resident_pages){.map = map, .pages_left = RESIDENT_PAGES_MAX};
    TRY(u64_vec_resize(&pages->first_words, map->areas.len));
    for (size_t i = 0; i < map->areas.len; i++) {
        pages->first_words.items[i] = UINT64_MAX;
    }
    return ERR_OK;
}

void page_wants_release(struct page_wants *wants)
{
    page_want_vec_release(&wants->wants);
    u64_vec_release(&wants->bits);
}

void resident_pages_release(struct resident_pages *pages)
{
    page_wants_release(&pages->wants);
    u64_vec_release(&pages->first_words);
}

enum err resident_pages_want(struct resident_pages *pages, size_t area, bool *out_is_listed)
{
    const struct memory_area *where = pages->map->areas.items + area;
    struct page_wants *wants = &pages->wants;
    const struct page_want want = {.area = area,
                                   .first_page = page_count(where->start),
                                   .count = (size_t)page_count(where->end - where->start),
                                   .first_word = wants->bits.len};
    *out_is_listed = want.count <= pages->pages_left;
    if (!*out_is_listed) {
        return ERR_OK;
    }
    pages->pages_left -= want.count;
    TRY(u64_vec_resize(&wants->bits, want.first_word + (want.count + 63) / 64));
    return page_want_vec_push(&wants->wants, want);
}

void page_wants_read(struct page_wants *wants, const struct page_source *source)
{
    for (size_t i = 0; i < wants->wants.len && source->read != NULL; i++) {
        struct page_want *want = wants->wants.items + i;
        want->is_known = source->read(source->context, want->first_page, want->count,
                                      wants->bits.items + want->first_word);
    }
}

void resident_pages_take(struct resident_pages *pages)
{
    for (size_t i = 0; i < pages->wants.wants.len; i++) {
        const struct page_want *want = pages->wants.wants.items + i;
        if (want->is_known) {
            pages->first_words.items[want->area] = want->first_word;
        }
    }
}

bool resident_pages_are_known(const struct resident_pages *pages, size_t area)
{
    return pages->first_words.items[area] != UINT64_MAX;
}

uint64_t resident_pages_index(const struct resident_pages *pages, size_t area, uint64_t address)
{
    const uint64_t page = page_count(address - pages->map->areas.items[area].start);
    return pages->first_words.items[area] * 64 + page;
}

// Return how many of the bits [from, to) are set.
static uint64_t count_bits(const struct resident_pages *pages, uint64_t from, uint64_t to)
{
    uint64_t count = 0;
    while (from < to && from % 64 != 0) {
        count += resident_pages_has(pages, from++);
    }
    for (; from + 64 <= to; from += 64) {
        count += (uint64_t)__builtin_popcountll(pages->wants.bits.items[from / 64]);
    }
    while (from < to) {
        count += resident_pages_has(pages, from++);
    }
    return count;
}

uint64_t
resident_pages_count(const struct resident_pages *pages, size_t area, uint64_t start, uint64_t end)
{
    return count_bits(pages, resident_pages_index(pages, area, start),
                      resident_pages_index(pages, area, end));
}

uint64_t
resident_pages_bytes(const struct resident_pages *pages, size_t area, uint64_t start, uint64_t end)
{
    if (start >= end) {
        return 0;
    }
    const uint64_t area_start = pages->map->areas.items[area].start;
    const uint64_t first = resident_pages_index(pages, area, start);
    const uint64_t last = resident_pages_index(pages, area, end - 1);
    uint64_t bytes = count_bits(pages, first, last + 1) * page_bytes();
    if (resident_pages_has(pages, first)) {
        bytes -= page_rest(start - area_start);
    }
    if (resident_pages_has(pages, last)) {
        bytes -= page_bytes() - 1 - page_rest(end - 1 - area_start);
    }
    return bytes;
}

// Divides an amount by parts of a whole, without a remainder.
struct division {
    uint64_t amount; // at most the whole
    uint64_t whole;
    uint64_t seen; // parts
    uint64_t given;
};

// Return the share of the next part: at most the part.
static uint64_t next_share(struct division *d, uint64_t part)
{
    d->seen += part;
    const uint64_t before = d->given;
    d->given = share_u64(d->amount, d->seen, d->whole);
    return d->given - before;
}

// Take pages that are not resident: of heap only what the other pieces do not have.
static void take(struct rss_piece *pieces, size_t count, uint64_t amount)
{
    uint64_t others = 0;
    uint64_t heap = 0;
    for (size_t i = 0; i < count; i++) {
        *(pieces[i].kind == REC_PART_KEPT ? &heap : &others) += page_count(pieces[i].rss_bytes);
    }
    const uint64_t from_others = min_u64(amount, others);
    struct division of_others = {.amount = from_others, .whole = others};
    struct division of_heap = {.amount = amount - from_others, .whole = heap};
    for (size_t i = 0; i < count; i++) {
        struct division *from = pieces[i].kind == REC_PART_KEPT ? &of_heap : &of_others;
        pieces[i].rss_bytes -= next_share(from, page_count(pieces[i].rss_bytes)) * page_bytes();
    }
}

// Give what came between the reading of the map and of the pages to the largest piece, and what
// exceeds its size to the others: no piece exceeds its size, and no area has more in memory than it
// is large (memory_areas.h).
static void give(struct rss_piece *pieces, size_t count, struct rss_piece *largest, uint64_t bytes)
{
    uint64_t left = bytes;
    const uint64_t first = min_u64(left, largest->end - largest->start - largest->rss_bytes);
    largest->rss_bytes += first;
    left -= first;
    for (size_t i = 0; i < count; i++) {
        const uint64_t more = min_u64(left, pieces[i].end - pieces[i].start - pieces[i].rss_bytes);
        pieces[i].rss_bytes += more;
        left -= more;
    }
}

void resident_pages_share_out(const struct resident_pages *pages,
                              struct rss_piece *pieces,
                              size_t count)
{
    const struct memory_area *area = pages->map->areas.items + pieces->area;
    const bool is_known = resident_pages_are_known(pages, pieces->area);
    struct division by_size = {.amount = page_count(area->rss_bytes),
                               .whole = page_count(area->end - area->start)};
    struct rss_piece *largest = pieces;
    uint64_t total_bytes = 0;
    for (size_t i = 0; i < count; i++) {
        struct rss_piece *piece = pieces + i;
        const uint64_t own =
            is_known ? resident_pages_count(pages, piece->area, piece->start, piece->end)
                     : next_share(&by_size, page_count(piece->end - area->start) -
                                                page_count(piece->start - area->start));
        piece->rss_bytes = own * page_bytes();
        total_bytes += piece->rss_bytes;
        largest = piece->rss_bytes > largest->rss_bytes ? piece : largest;
    }
    largest->swap_bytes = area->swap_bytes;
    // A part of a page is given back. A true area has none.
    const uint64_t missing = page_count(page_end(excess_u64(total_bytes, area->rss_bytes)));
    take(pieces, count, missing);
    give(pieces, count, largest, area->rss_bytes + missing * page_bytes() - total_bytes);
}
