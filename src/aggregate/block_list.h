// SPDX-License-Identifier: MIT
// block_list: lists the single blocks that were live at the end and at the peak (--blocks).
//
// The blocks of the end are known then: words say them (drain_books.h). The blocks of the peak that
// have been freed since are kept here:
//
//   a free takes a block that was live at the latest peak  -> `freed`
//   a new peak                                             -> `freed` is empty: they do not count
//
// The birth of a block decides whether it was live at the latest peak: if it is later than the time
// at which the peak was seen, it was not. The exceptions are the blocks that were allocated between
// the peak and that time; `births` remembers them. So the list keeps only blocks that were live at
// the peak, and only the end of a process visits all its blocks, which then go to `ended`.
//
// Threads send what they know of single blocks (books/book_blocks.h).
//
// Invariant: while nothing was omitted, the list has peak_blocks blocks of the peak for each row,
// and allocations - frees blocks of the end. A killed thread has perhaps not counted a block that
// has a word; no row lists more blocks than it has.
// Memory: at most BLOCKS_LISTED_MAX entries in each of the two lists. Beyond that each row keeps an
// equal share of its blocks of the end. Of the blocks freed since the peak the first are kept. The
// rest is counted. A zeroed object is valid.
// Context: H, the recorder's main thread.
// Failure: ERR_NO_MEMORY.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "aggregate/block_births.h"
#include "aggregate/rows/row_table.h"
#include "base/err.h"
#include "host/containers/vec.h"
#include "recording/format/tables.h"

#define BLOCKS_LISTED_MAX (1u << 20)
#define PEAKS_SEEN_MAX    64u

DEFINE_VEC(rec_block_vec, struct rec_block);

// A block that was live when its process ended.
struct ended_block {
    struct rec_block block;
    uint64_t peak_number; // REC_BLOCK_PEAK is valid while this is the latest peak
};
DEFINE_VEC(ended_block_vec, struct ended_block);

// When a peak was seen: no block that is older has a later birth.
struct peak_seen {
    uint64_t number;
    uint64_t ms;
};

struct block_list {
    uint64_t peak_number;                  // the peak of `freed` and `births`
    uint64_t peak_ms;                      // when it was seen; UINT64_MAX: not known
    struct peak_seen seen[PEAKS_SEEN_MAX]; // the latest peak, or the first one after it, and later
    uint32_t seen_count;
    struct block_births births; // allocated after the peak, with births up to peak_ms
    struct rec_block_vec freed; // live at the peak, freed since
    uint64_t freed_omitted;     // since this peak
    struct ended_block_vec ended;
    uint64_t ended_omitted;
    uint64_t birth_error_ms;      // by which listed blocks may be younger than they state
    uint64_t seed;                // should be unknown to the program
    const struct row_table *rows; // borrowed; visited when a process ends
};

// A block that is to be listed, and the hash that names it in `births`.
struct named_block {
    struct rec_block block; // its address as in wire.h; no flags
    uint64_t hash;
};

void block_list_release(struct block_list *list);

// Parameter peak_number: the number of peaks so far (row_table.h).

// Note that the peak of that number was seen by then. false: there is no room to note it.
bool block_list_see_peak(struct block_list *list, uint64_t peak_number, uint64_t ms);

// Follow to the peak of that number, if it is a new one. It was seen, or a later one.
enum err block_list_follow(struct block_list *list, uint64_t peak_number) MUST_USE;

// A block was freed after the latest peak: list it if it was live then.
enum err block_list_freed(struct block_list *list, const struct named_block *named) MUST_USE;

// How many blocks of each row can be listed when a process ends.
struct block_shares {
    bool is_short; // not all
    uint64_t each;
    struct u32_vec kept; // owned: by row, how many there are
};
void block_shares_release(struct block_shares *shares);
enum err block_shares_of(const struct block_list *list,
                         uint64_t live_count,
                         struct block_shares *out) MUST_USE;

// A block was live when its process ended. `was_there`: it had not left the heap before the latest
// peak.
enum err block_list_ended(struct block_list *list,
                          struct block_shares *shares,
                          const struct named_block *named,
                          bool was_there) MUST_USE;

// Collect all listed blocks, by row and address.
enum err block_list_collect(const struct block_list *list,
                            uint64_t peak_number,
                            struct rec_block_vec *out) MUST_USE;

// Remove blocks that their rows have not counted. Return how often a block was removed.
uint64_t block_list_clip(const struct row_table *rows, struct rec_block_vec *blocks);

static inline uint64_t block_list_omitted(const struct block_list *list)
{
    return list->freed_omitted + list->ended_omitted;
}
