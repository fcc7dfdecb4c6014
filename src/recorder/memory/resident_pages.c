// SPDX-License-Identifier: MIT
#include "recorder/memory/resident_pages.h"

#include "base/compiler.h"
#include "host/memory/page_size.h"

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
