// SPDX-License-Identifier: MIT
// survivors: the live blocks that keep almost empty pages of the heap resident.
//
//   page     |########|##......|#.......|........|
//             full     ^ sparse ^ sparse  empty
//                      these blocks are survivors
//
// A page is sparse if the requested bytes of live blocks fill a quarter of it at most.
// Its free bytes are held: they could go back to the kernel if its survivors went. A page with
// several survivors divides its held bytes by their sizes. An empty page has no live block at all:
// the allocator alone decides when it returns that.
//
// All figures are estimates: the headers, rounding and tables of allocators count as free. Memory:
// 2 bytes a page. Besides, pages are pinned that an allocator cannot return because of a block
// (release_rules.h); a call that releases free memory returns the other ones. Context: H.
#pragma once

#include <stdint.h>

#include "aggregate/books/listed_block.h"
#include "base/err.h"
#include "host/containers/map_u64.h"
#include "host/containers/vec.h"
#include "recorder/memory/resident_pages.h"
#include "recorder/memory/rss_pieces.h"

enum {
    SURVIVORS_MAX = 64, // stacks of one snapshot
    SPARSE_PARTS = 4,   // a page is sparse with at most this part of it in blocks
    PAGE_PINNED = 1 << 30,
};

DEFINE_VEC(page_fill_vec, uint32_t); // bytes, and PAGE_PINNED
DEFINE_VEC(rec_survivor_vec, struct rec_survivor);

struct survivors {
    const struct resident_pages *pages; // borrowed
    struct page_fill_vec fill;          // owned; by page: bytes of live blocks
    uint64_t steps_left;                // bounds the time for blocks that a program invents
};

// Begin with empty pages. `pages` must not change any more.
enum err survivors_init(struct survivors *survivors, const struct resident_pages *pages) MUST_USE;
void survivors_release(struct survivors *survivors);

// Count a live block within an area whose pages are known.
void survivors_count(struct survivors *survivors, size_t area, struct address_range block);

// Note that the pages of a range within an area cannot be returned.
void survivors_pin(struct survivors *survivors, size_t area, struct address_range range);

// Return the bytes of resident pages of a range that are not pinned, after all were.
// *out_trailing_bytes: those behind the last pinned page.
uint64_t survivors_releasable_bytes(const struct survivors *survivors,
                                    size_t area,
                                    struct address_range range,
                                    uint64_t *out_trailing_bytes);

// The pages of a range, after all blocks were counted.
struct sparse_pages {
    uint64_t empty_bytes;  // resident pages without a block
    uint64_t sparse_bytes; // sparse pages
    uint64_t block_bytes;  // of blocks on sparse pages
};
void survivors_sum(const struct survivors *survivors,
                   size_t area,
                   struct address_range range,
                   struct sparse_pages *sum);

// Return how many free bytes the block keeps resident; 0 if it is on no sparse page.
uint64_t
survivors_held_bytes(const struct survivors *survivors, size_t area, struct address_range block);

// What the survivors of each stack hold. Zeroed is empty and valid.
struct survivor_list {
    struct map_u64 of_nodes;       // owned; node -> item
    struct rec_survivor_vec items; // owned
};

void survivor_list_release(struct survivor_list *list);

// Add a block of a stack, which holds `held_bytes`.
enum err survivor_list_add(struct survivor_list *list,
                           uint32_t node,
                           const struct listed_block *block,
                           uint64_t held_bytes) MUST_USE;

// Append the largest, at most SURVIVORS_MAX, with `snapshot` as their snapshot.
enum err survivor_list_append_top(struct survivor_list *list,
                                  uint32_t snapshot,
                                  struct rec_survivor_vec *out) MUST_USE;
