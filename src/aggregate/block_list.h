// SPDX-License-Identifier: MIT
// block_list: lists the single blocks that were live at the end and at the peak (--blocks).
//
// The live map has the blocks of the end. The blocks of the peak that have been freed since are
// kept here:
//
//   a free takes a block that was live at the latest peak  -> `freed`
//   a new peak                                             -> `freed` is empty: they do not count
//
// The birth of a block decides whether it was live at the latest peak. The exceptions are the few
// blocks that were allocated after the peak within its tick; `after` remembers them. So the list
// keeps only blocks that were live at the peak, and only the end of a process visits all its
// blocks, which then go to `ended`.
//
// Invariant: while nothing was omitted, the list has peak_blocks blocks of the peak for each row,
// and allocations - frees blocks of the end.
// Memory: at most BLOCKS_LISTED_MAX entries in each of the two lists. Beyond that each row keeps an
// equal share of its blocks of the end. Of the blocks freed since the peak the first are kept. The
// rest is counted. A zeroed object is valid.
// Context: H, the recorder's main thread.
// Failure: ERR_NO_MEMORY.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "aggregate/live_blocks/live_map.h"
#include "aggregate/live_blocks/observer.h"
#include "aggregate/rows/row_table.h"
#include "base/err.h"
#include "host/containers/map_u64.h"
#include "host/containers/vec.h"
#include "recording/format/tables.h"

#define BLOCKS_LISTED_MAX (1u << 20)

DEFINE_VEC(rec_block_vec, struct rec_block);

// A block that was live when its process ended.
struct ended_block {
    struct rec_block block;
    uint64_t peak_number; // REC_BLOCK_PEAK is valid while this is the latest peak
};
DEFINE_VEC(ended_block_vec, struct ended_block);

struct block_list {
    uint64_t peak_number; // the peak of `after` and `freed`
    uint64_t peak_ms;     // latest birth before it
    uint64_t latest_born_ms;
    struct map_u64 after; // hash of a block -> how many such were allocated after the peak, in its
                          // tick
    struct rec_block_vec freed; // live at the peak, freed since
    uint64_t freed_omitted;     // since this peak
    struct ended_block_vec ended;
    uint64_t ended_omitted;
    uint64_t seed;                // should be unknown to the program
    const struct row_table *rows; // borrowed; visited when a process ends
};

void block_list_release(struct block_list *list);

// Parameter peak_number: the number of peaks so far (row_table.h).

// Note the end of a process or of the recording: the blocks in `live` are live at the end.
enum err block_list_ended(struct block_list *list,
                          uint64_t peak_number,
                          const struct row_table *rows,
                          const struct live_map *live) MUST_USE;

// Collect all listed blocks, by row and address.
enum err block_list_collect(const struct block_list *list,
                            uint64_t peak_number,
                            struct rec_block_vec *out) MUST_USE;

static inline uint64_t block_list_omitted(const struct block_list *list)
{
    return list->freed_omitted + list->ended_omitted;
}

// Return an observer that lists the blocks of the rows in list->rows.
struct observer block_list_observer(struct block_list *list);
