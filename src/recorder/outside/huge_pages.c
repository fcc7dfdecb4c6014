// SPDX-License-Identifier: MIT
#include "recorder/outside/huge_pages.h"

#include <string.h>

#include "base/minmax.h"
#include "host/memory/page_size.h"

#define HUGE_BYTES     ((uint64_t)2 << 20) // of a huge page, or a part of one
#define HUGE_BYTES_MIN (2 * HUGE_BYTES)    // in an area that is looked at

enum {
    LOOKS = 2048,
    LOOKS_MIN = 32,   // at an area
    PAGE_STRIDE = 53, // odd: the pages within huge ones differ from look to look
};

struct huge_search {
    const struct memory_source *memory;
    const struct page_source *pages;
    uint64_t range; // that was looked at last, by its address; 0: none
    bool is_whole;  // all of it is resident
};

static bool is_resident_range(struct huge_search *search, uint64_t start)
{
    uint64_t bits[HUGE_BYTES / PAGE_GRAIN / 64] = {0};
    if (search->range == start) {
        return search->is_whole;
    }
    search->range = start;
    const uint64_t count = page_count(HUGE_BYTES);
    const bool is_known =
        search->pages->read(search->pages->context, page_count(start), count, bits);
    uint64_t resident = 0;
    for (size_t i = 0; i < sizeof(bits) / sizeof(*bits); i++) {
        resident += (uint64_t)__builtin_popcountll(bits[i]);
    }
    search->is_whole = is_known && resident == count;
    return search->is_whole;
}

static bool is_blank(const uint64_t *words)
{
    uint64_t any = 0;
    for (size_t i = 0; i < PAGE_GRAIN / sizeof(*words); i++) {
        any |= words[i];
    }
    return any == 0;
}

static void look_at(struct huge_search *search, struct memory_area *area, uint64_t looks)
{
    const uint64_t first = (area->start + HUGE_BYTES - 1) / HUGE_BYTES;
    const uint64_t ranges = excess_u64(area->end / HUGE_BYTES, first);
    uint64_t seen = 0;
    uint64_t blank = 0;
    for (uint64_t i = 0; i < looks && ranges > 0; i++) {
        const uint64_t start =
            (first + (uint64_t)((unsigned __int128)i * ranges / looks)) * HUGE_BYTES;
        const uint64_t at = start + i * PAGE_STRIDE % (HUGE_BYTES / PAGE_GRAIN) * PAGE_GRAIN;
        uint64_t words[PAGE_GRAIN / sizeof(uint64_t)];
        if (is_resident_range(search, start) &&
            search->memory->read(search->memory->context, at, words, sizeof(words))) {
            seen++;
            blank += is_blank(words);
        }
    }
    const uint64_t huge_grains = area->huge_bytes / PAGE_GRAIN;
    area->blank_bytes = seen == 0 ? 0 : huge_grains * blank / seen * PAGE_GRAIN;
}

void huge_pages_estimate(struct memory_areas *map,
                         const struct memory_source *memory,
                         const struct page_source *pages)
{
    struct huge_search search = {.memory = memory, .pages = pages};
    uint64_t huge_bytes = 0;
    for (size_t i = 0; i < map->areas.len; i++) {
        huge_bytes += map->areas.items[i].huge_bytes;
    }
    for (size_t i = 0; i < map->areas.len && pages->read != NULL; i++) {
        struct memory_area *area = map->areas.items + i;
        const uint64_t looks =
            area->huge_bytes / HUGE_BYTES * LOOKS / max_u64(1, huge_bytes / HUGE_BYTES);
        if (area->huge_bytes >= HUGE_BYTES_MIN && looks > 0) {
            look_at(&search, area, max_u64(LOOKS_MIN, looks));
        }
    }
}
