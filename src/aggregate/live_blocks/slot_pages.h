// SPDX-License-Identifier: MIT
// slot_pages: the memory of a settled_map, in pages that stay together.
//
// A lookup in a map of millions of blocks reads two lines at random, and with pages of 4 KiB it
// waits for the address of each to be translated as long as for the line itself. So the pages come
// from chunks of 2 MiB, and when a chunk has become full, another thread gets a huge page
// (chunk_maker), to which its pages move. Where there is none, nothing but speed is lost; a map too
// small to fill a chunk has nothing more than the pages that it uses, and no thread.
//
// Who owns a page holds its number, which changes: when a page is given back, the last one moves
// into its place. So there are no holes, and a chunk that is not needed any more goes back to the
// kernel whole. Where a page of some number is, slot_pages_at tells; it moves with its chunk.
//
//   owners  0    1    2    3    4   |  ...           give(2):  page 4 moves to 2, its owner is told
//   chunk  [ pages 0 to 511        ] [ the last one, partly used ]
//
// Memory: 4 KiB and 8 to 12 bytes a page, a fiftieth of that in spare pages at most, and the
// owner's 4 bytes. Forked copies of us do not have it (MADV_DONTFORK). Context: H, one thread.
// Failure: ERR_NO_MEMORY.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "aggregate/live_blocks/chunk_maker.h"
#include "base/err.h"
#include "host/containers/vec.h"

#define SLOT_PAGE_BYTES  4096u
#define SLOT_CHUNK_PAGES ((uint32_t)(CHUNK_BYTES / SLOT_PAGE_BYTES))

DEFINE_VEC(slot_chunk_vec, char *);
DEFINE_VEC(slot_owner_vec, uint32_t *);

// Zeroed is empty and valid.
struct slot_pages {
    struct slot_chunk_vec chunks; // owned, of CHUNK_BYTES
    struct slot_owner_vec owners; // borrowed, one a page
    uint32_t touched_count;       // so many pages have ever been in use and may not be zero
    uint32_t huge_count;          // so many chunks, from the first, are huge pages or cannot be
    bool is_huge_asked;           // for the next one of them
    struct chunk_maker *maker;    // owned; NULL before a chunk is full
};

void slot_pages_release(struct slot_pages *pages);

// Page `number`, of SLOT_PAGE_BYTES and aligned to as much; until a page is taken or given back.
static inline void *slot_pages_at(const struct slot_pages *pages, uint32_t number)
{
    return pages->chunks.items[number / SLOT_CHUNK_PAGES] +
           (size_t)(number % SLOT_CHUNK_PAGES) * SLOT_PAGE_BYTES;
}

// Takes a page of zeroes, whose number is in *owner from here on until the page is given back:
// *owner must stay where it is, and changes. Pages may move.
enum err slot_pages_take(struct slot_pages *pages, uint32_t *owner) MUST_USE;

// Gives page *owner back. Others may move.
void slot_pages_give(struct slot_pages *pages, const uint32_t *owner);

// Moves the pages of chunk `index`, which is full, to `chunk`. Returns the one where they were.
char *slot_pages_move_chunk(struct slot_pages *pages, size_t index, char *chunk) MUST_USE;

// Memory held, in bytes.
uint64_t slot_pages_bytes(const struct slot_pages *pages);
