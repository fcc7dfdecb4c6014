// SPDX-License-Identifier: MIT
// memory_budget: what the recorder does when its memory comes near its cap (--max-memory).
//
// Two things grow with the program: stacks (with their rows and names) and live blocks. Each has a
// part of the cap, in 32nds of it; what is left is for tables that are being copied as they grow.
//
//   stacks and all else  below 14   every stack is kept
//                        from 14    a stack that is new is merged: of its frames stay those that
//                                   are known already, 16 at most, and the innermost one
//                        from 16    the same with 4
//                        from 17    no stack and no row is added any more; what is new counts
//                                   as one stack of its thread
//   live blocks          below 7    every block is kept
//                        7 to 9     new ones are sampled, as threads do
//                                   (session/sampling_level.h): one in 2 to one in 2^20, large
//                                   ones more likely than small ones
//
// Of the last kind, call sites (the innermost frame alone) are told apart as long as there are no
// more than some thousands. Stacks that come first when there have been millions are the rare ones,
// as a rule. Nothing is forgotten that was known once, so no sum changes when a part is full.
// Context: H, one thread; owned by the aggregator. Zeroed: no cap.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define MEMORY_BUDGET_MIN         ((uint64_t)64 << 20) // less is no use: cairn itself takes 20 MiB
#define MEMORY_BUDGET_BLOCK_BYTES 24u                  // of a live block: live_table.h

enum memory_merging {
    MEMORY_MERGES_NOTHING,
    MEMORY_MERGES_DEEP, // stacks, of which 16 frames and one stay
    MEMORY_MERGES_MOST, // 4 frames and one
    MEMORY_MERGES_ALL,
};

struct memory_budget {
    uint64_t max_bytes;          // 0: no cap
    enum memory_merging merging; // never less than before
    uint32_t level;              // of sampling: 0 to LANE_LEVEL_MAX
    uint64_t random;
    uint32_t late_entries;  // nodes and rows that were added although all is merged
    uint64_t merged_stacks; // definitions of stacks that were merged
    uint64_t unkept_blocks; // that were left out
};

// Looks at what is taken: all of our own memory, and so many blocks.
void memory_budget_look(struct memory_budget *budget, uint64_t own_bytes, uint64_t block_count);

// Whether one more node or row may be added for a stack that is merged.
bool memory_budget_adds(struct memory_budget *budget);

// How many of the frames of a new stack are kept, beside the innermost one.
uint32_t memory_budget_depth(const struct memory_budget *budget);

// Decides about a new block of size_bytes that stands for 1 << *shift. True: it is to be kept, and
// stands for 1 << *shift now. False: it is left out, and counted.
bool memory_budget_takes(struct memory_budget *budget, uint64_t size_bytes, uint32_t *shift);
