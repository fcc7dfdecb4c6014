// SPDX-License-Identifier: MIT
// block_list: which blocks were live at the end, and which at the peak, one by one (--blocks).
//
// The live map knows the blocks of the end. Of those of the peak, some have been freed since; they
// are kept here as they go:
//
//   a free takes a block that was live at the latest peak  -> `freed`
//   a new peak                                             -> `freed` is empty: they do not count
//
// Whether a block was live at the latest peak follows from its birth, but for those that were
// allocated after it within the same tick: these few are walk_cache (`after`). So nothing is kept
// that was not live at the peak, and no moment needs a look at all blocks but the end of a process,
// whose blocks of the end go to `ended`.
//
// Invariant: for each row, the blocks of the peak are as many as its peak_blocks, and those of the
// end as many as its allocations - frees, as long as nothing was left out.
// Memory: BLOCKS_LISTED_MAX entries in each of the two lists. Beyond that, each row keeps an equal
// share of its blocks of the end, and of those freed since the peak the first are kept; the rest is
// counted.
// A zeroed object is valid. Context: H, the recorder's main thread. Failure: ERR_NO_MEMORY.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "aggregate/live_blocks/live_map.h"
#include "aggregate/observer.h"
#include "aggregate/rows/row_table.h"
#include "base/err.h"
#include "host/containers/map_u64.h"
#include "host/containers/vec.h"
#include "recording/format/tables.h"

#define BLOCKS_LISTED_MAX (1u << 20)

DEFINE_VEC(rec_block_vec, struct rec_block);

// The blocks at the end of processes that have ended: at the peak only if that has not moved since.
struct ended_block {
    struct rec_block block;
    uint64_t peak_number; // REC_BLOCK_PEAK is true of this peak
};
DEFINE_VEC(ended_block_vec, struct ended_block);

struct block_list {
    uint64_t peak_number; // that `after` and `freed` are about
    uint64_t peak_ms;     // latest birth before it
    uint64_t latest_born_ms;
    struct map_u64 after; // hash of a block -> how many like it came after the peak in its tick
    struct rec_block_vec freed; // live at the peak, freed since
    uint64_t freed_left_out;    // of this peak
    struct ended_block_vec ended;
    uint64_t ended_left_out;
    uint64_t seed;                // should be unknown to the program
    const struct row_table *rows; // borrowed; counted when a process ends
};

void block_list_release(struct block_list *list);

// peak_number: how many peaks there have been so far (row_table.h).

// A block was allocated and all sums are raised; peak_before is the number before that.
enum err block_list_allocated(struct block_list *list,
                              uint64_t peak_number,
                              uint64_t peak_before,
                              uint64_t address,
                              const struct live_block *block) MUST_USE;

// A block was freed.
enum err block_list_freed(struct block_list *list,
                          uint64_t peak_number,
                          uint64_t address,
                          const struct live_block *block,
                          uint64_t freed_ms) MUST_USE;

// A process ends, or the recording does: what lives in `live` lives at the end.
enum err block_list_ended(struct block_list *list,
                          uint64_t peak_number,
                          const struct row_table *rows,
                          const struct live_map *live) MUST_USE;

// Everything that is to be listed, by row and address.
enum err block_list_collect(const struct block_list *list,
                            uint64_t peak_number,
                            struct rec_block_vec *out) MUST_USE;

static inline uint64_t block_list_left_out(const struct block_list *list)
{
    return list->freed_left_out + list->ended_left_out;
}

// Lists the blocks of the rows in list->rows.
struct observer block_list_observer(struct block_list *list);
