// SPDX-License-Identifier: MIT
// resident_pages: which pages of a memory map are resident, for the areas where that was asked.
//
//   area 0    not read
//   area 1    1110000111...    a bit a page, from a word of its own on
//
// The wanted areas are listed first, then read, which needs nothing else and may be done aside
// (recorder_reading.c), then taken.
// Memory: a bit a page of the areas that were read. At most RESIDENT_PAGES_MAX pages are read; for
// areas beyond that, and for those without an answer of the kernel, it is unknown which.
// Context: H.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "recorder/memory/memory_areas.h"

struct rss_piece;

#define RESIDENT_PAGES_MAX ((size_t)16 << 20) // 64 GiB of pages of 4 KiB

// An area whose pages are wanted.
struct page_want {
    size_t area;
    uint64_t first_page;
    size_t count;
    size_t first_word; // in bits
    bool is_known;     // it was read
};
DEFINE_VEC(page_want_vec, struct page_want);

// What is read. Zeroed is empty.
struct page_wants {
    struct page_want_vec wants; // owned
    struct u64_vec bits;        // owned; of all of them
};

struct resident_pages {
    const struct memory_areas *map; // borrowed
    struct page_wants wants;        // owned
    struct u64_vec first_words;     // owned; by area: its first word in bits, or UINT64_MAX
    size_t pages_left;
};

void page_wants_release(struct page_wants *wants);

// Read all of them.
void page_wants_read(struct page_wants *wants, const struct page_source *source);

enum err resident_pages_init(struct resident_pages *pages, const struct memory_areas *map) MUST_USE;
void resident_pages_release(struct resident_pages *pages);

// Want the pages of an area, once. *out_is_listed: there is room for them.
enum err resident_pages_want(struct resident_pages *pages, size_t area, bool *out_is_listed)
    MUST_USE;

// Take what was read of the wanted ones.
void resident_pages_take(struct resident_pages *pages);

// Whether the pages of an area are known.
bool resident_pages_are_known(const struct resident_pages *pages, size_t area);

// The functions below are about an area whose pages are known, and addresses within it.

// Count the resident pages from the one at `start` to the one before `end`.
uint64_t
resident_pages_count(const struct resident_pages *pages, size_t area, uint64_t start, uint64_t end);

// Return the bytes of [start, end) on resident pages.
uint64_t
resident_pages_bytes(const struct resident_pages *pages, size_t area, uint64_t start, uint64_t end);

// Divide what an area has in memory among its pieces, all of them: set their rss_bytes. A piece has
// its resident pages. Pages that share the kernel's zero page are present, but not resident; it is
// unknown which. A page that was only read is rarely of an allocator, so as many pages of the other
// pieces count as such, and of heap only the rest. Without known pages a piece has its share of the
// area's size.
void resident_pages_share_out(const struct resident_pages *pages,
                              struct rss_piece *pieces,
                              size_t count);

// Return the number of the page at `address` among all bits, for tables that are parallel to them.
uint64_t resident_pages_index(const struct resident_pages *pages, size_t area, uint64_t address);

static inline bool resident_pages_has(const struct resident_pages *pages, uint64_t index)
{
    return (pages->wants.bits.items[index / 64] >> index % 64 & 1) != 0;
}
