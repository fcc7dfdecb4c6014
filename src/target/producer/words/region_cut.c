// SPDX-License-Identifier: MIT
#include "target/producer/words/region_cut.h"

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"
#include "base/sys.h"

#define PAGES ((uint32_t)(WORDS_REGION_BYTES >> WORDS_COARSE_BITS))

// Of a table, for a page of addresses.
#define COARSE_PAGE sizeof(uint64_t)
#define MIDDLE_PAGE (sizeof(uint64_t) << (WORDS_COARSE_BITS - WORDS_MIDDLE_BITS))
#define FINE_PAGE   (sizeof(uint64_t) << (WORDS_COARSE_BITS - WORDS_FINE_BITS))
#define TINY_PAGE   (sizeof(uint64_t) << (WORDS_COARSE_BITS - WORDS_TINY_BITS))

// Parts that are given back alone are no shorter: each may be a mapping more, which a process can
// have 65,530 of (max_map_count).
#define TABLE_BYTES_MIN ((uint64_t)256 << 10)
#define TINY_BYTES_MIN  ((uint64_t)1 << 20)

// Return whether a table may have words in the page from now on.
static bool keeps(_Atomic uint8_t *has)
{
    uint8_t found = WORDS_NOTE_NONE;
    // Relaxed: the note decides by itself.
    (void)atomic_compare_exchange_strong_explicit(has, &found, WORDS_NOTE_GONE,
                                                  memory_order_relaxed, memory_order_relaxed);
    return found == WORDS_NOTE_HAD;
}

// A table of one region, and the part of it that is not used, as far as it is known.
struct table_cut {
    char *table;
    uint64_t page_bytes; // of the table, for a page of addresses
    uint64_t bytes_min;
    uint64_t unused_from; // in the table
};

// Give back what is not used and ends at `end`.
static void give_back(const struct table_cut *cut, uint64_t end)
{
    const uint64_t from = page_end_of(cut->unused_from, PAGE_LARGEST);
    const uint64_t to = page_start_of(end, PAGE_LARGEST);
    if (from < to && to - from >= cut->bytes_min) {
        (void)sys_munmap(cut->table + from, to - from); // refused, it stays reserved
    }
}

static void pass_page(struct table_cut *cut, uint32_t page, bool is_used)
{
    if (is_used) {
        give_back(cut, page * cut->page_bytes);
        cut->unused_from = (page + 1) * cut->page_bytes;
    }
}

// Mark that blocks have no tiny words from now on, and return whether none has had one.
static bool renounce_tiny(struct words_region *region, const _Atomic uint32_t *tiny_below)
{
    if (tiny_below == NULL ||
        atomic_load_explicit(tiny_below, memory_order_relaxed) != WORDS_TINY_NEVER) {
        return false;
    }
    for (uint32_t i = 0; i < PAGES; i++) {
        atomic_store_explicit(&region->pages[i].lacks_tiny, 1, memory_order_seq_cst);
    }
    // Sequentially consistent, as the marks: if it has not risen by now, a thread that sees it
    // risen (acquire in words_tiny_below) sees the marks.
    return atomic_load_explicit(tiny_below, memory_order_seq_cst) == WORDS_TINY_NEVER;
}

void region_cut(struct words_region *region, const _Atomic uint32_t *tiny_below)
{
    const bool lacks_tiny = renounce_tiny(region, tiny_below);
    char *base = (char *)region;
    struct table_cut cuts[] = {
        {base + offsetof(struct words_region, coarse), COARSE_PAGE, PAGE_LARGEST, 0},
        {base + offsetof(struct words_region, large), COARSE_PAGE, PAGE_LARGEST, 0},
        {base + offsetof(struct words_region, middle), MIDDLE_PAGE, TABLE_BYTES_MIN, 0},
        {base + offsetof(struct words_region, fine), FINE_PAGE, TABLE_BYTES_MIN, 0},
        {base + offsetof(struct words_region, tiny), TINY_PAGE, TINY_BYTES_MIN, 0},
    };
    for (uint32_t i = 0; i < PAGES; i++) {
        struct words_page *page = region->pages + i;
        const bool keeps_coarse = keeps(&page->has_coarse);
        const bool keeps_fine = keeps(&page->has_fine);
        pass_page(cuts + 0, i, keeps_coarse);
        pass_page(cuts + 1, i, keeps_coarse);
        pass_page(cuts + 2, i, keeps(&page->has_middle));
        pass_page(cuts + 3, i, keeps_fine);
        pass_page(cuts + 4, i, keeps_fine && !lacks_tiny);
    }
    for (uint32_t i = 0; i < ARRAY_LEN(cuts); i++) {
        give_back(cuts + i, PAGES * cuts[i].page_bytes);
    }
}
