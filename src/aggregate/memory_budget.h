// SPDX-License-Identifier: MIT
// memory_budget: keeps the recorder's memory below its cap (--max-memory).
//
// Two things grow with the program: stacks (with their rows and names) and live blocks. Each has a
// part of the cap, in 32nds. The rest is for tables that are copied as they grow.
//
//   stacks and all else  below 14   every stack is kept
//                        from 14    a new stack is merged: it keeps those of its frames that are
//                                   known already, 16 at most, and the innermost frame
//                        from 16    a new stack is merged to 4 frames and the innermost one
//                        from 17    no stack and no row is added; new stacks count as one
//                                   merged stack of their thread
//   live blocks          below 7    every block is kept
//                        7 to 9     new blocks are sampled, as threads do
//                                   (session/sampling_level.h): one in 2 to one in 2^20, large
//                                   blocks more likely than small ones
//
// While all stacks merge, some thousands of call sites (the innermost frame alone) still get
// entries of their own. Stacks that first appear after millions of others are usually rare. Known
// stacks and rows stay, so a full part changes no sum.
// Context: H, one thread; owned by the aggregator. Zeroed: no cap.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define MEMORY_BUDGET_MIN         ((uint64_t)64 << 20) // smallest useful cap: cairn takes 20 MiB
#define MEMORY_BUDGET_BLOCK_BYTES 24u                  // of a live block: live_table.h

enum memory_merging {
    MEMORY_MERGES_NOTHING,
    MEMORY_MERGES_DEEP, // to 16 frames and the innermost one
    MEMORY_MERGES_MOST, // to 4 frames and the innermost one
    MEMORY_MERGES_ALL,
};

struct memory_budget {
    uint64_t max_bytes;          // 0: no cap
    enum memory_merging merging; // never decreases
    uint32_t level;              // of sampling: 0 to LANE_LEVEL_MAX
    uint64_t random;
    uint32_t late_entries;  // nodes and rows that were added while all stacks merge
    uint64_t merged_stacks; // definitions of merged stacks
    uint64_t unkept_blocks; // blocks that are unsampled
};

// Set the merging and the sampling level from all memory of the recorder and its number of blocks.
void memory_budget_update(struct memory_budget *budget, uint64_t own_bytes, uint64_t block_count);

// Return whether a merged stack may add one more node or row.
bool memory_budget_adds(struct memory_budget *budget);

// Return how many frames of a new stack are kept in addition to the innermost one.
uint32_t memory_budget_depth(const struct memory_budget *budget);

// Decide about a new block of size_bytes with the sampling weight 1 << *shift. True: keep it, with
// the new weight 1 << *shift. False: the block is not sampled, and counted.
bool memory_budget_takes(struct memory_budget *budget, uint64_t size_bytes, uint32_t *shift);
