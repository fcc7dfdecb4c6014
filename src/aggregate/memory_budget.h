// SPDX-License-Identifier: MIT
// memory_budget: keeps the recorder's memory below its cap (--max-memory).
//
// Two things grow with the program: stacks (with their rows and names), and the words of live
// blocks, which are in memory that the programs share (session/books/block_words.h). Each has a
// part of the cap, in 32nds. The rest is for tables that are copied as they grow.
//
//   stacks and all else  below 14   every stack is kept
//                        from 14    the number of nodes and rows is the largest from now on: each
//                                   time it is reached, the rarest stacks are merged
//                                   (stack_pruning.h) until half as many are left
//                        from 16    that number decreases if memory grows all the same
//                        from 17    the table is full if merging does not help: new stacks are
//                                   merged as they come
//                        from 20    the table is full
//   words                below 7    every block has one
//                        7 to 9     threads choose the blocks that get one, at a level
//                                   (session/books/sampling_level.h): large blocks more likely than
//                                   small ones
//
// Words stay where they are, so pages of them that were touched are not given back before their
// process ends: what counts is pages, and the level does not fall while the process lives. A cap
// that is as large as without an option (is_usual) leaves words as much again as it says:
// their level begins at 7 ninths of that.
//
// Lanes are what threads need to record at all, so nothing makes them fewer. From many on, those of
// threads that rest give back what is empty. What they take beyond the cap all the same is noted.
//
// A pass that reads very many stacks at once treats the table as full from a number of entries on,
// until the rarest can be merged. A new stack in a full table keeps those of its outer frames that
// are known, and its innermost frame while few others were added. With a list of blocks (--blocks)
// rows keep their numbers, so the table is full from 14 on. No sum changes.
// Context: H, one thread; owned by the aggregator. Zeroed: no cap.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define MEMORY_BUDGET_MIN ((uint64_t)64 << 20) // smallest useful cap: cairn takes 20 MiB
// The first level for lack of memory, one block in 16 KiB. A page of words is of 16 KiB of small
// blocks, so lower levels would touch nearly all pages all the same.
#define MEMORY_LEVEL_MIN 8u

struct memory_budget {
    uint64_t max_bytes;     // 0: no cap
    bool is_usual;          // no cap was given, or one that is as large
    uint64_t entries_max;   // of nodes and rows; 0: not limited yet
    uint64_t entries_left;  // after the latest merging
    uint64_t bytes_left;    // by it, of stacks and all else; 0: not read yet
    bool keeps_rows;        // the list of blocks knows rows by their numbers
    bool is_full;           // for good
    uint32_t level;         // of sampling: 0, or MEMORY_LEVEL_MIN to LANE_LEVEL_MAX
    uint32_t late_entries;  // nodes and rows that were added to a full table
    uint64_t merged_stacks; // stacks that lost their own entry, or got none
    uint64_t over_bytes;    // most that threads' lanes have taken beyond the cap
    bool samples_alone;     // only for lack of memory do threads choose blocks
};

// What the recorder has at a moment.
struct memory_use {
    uint64_t own_bytes;   // all its memory
    uint64_t words_bytes; // of the programs
    uint64_t lanes_bytes; // of their threads, as far as it is known; the recorder maps a quarter
    uint64_t entries;     // nodes and rows
};

// Return from how many bytes of words on blocks are chosen.
uint64_t memory_budget_words_from(const struct memory_budget *budget);

// Return whether so many lanes give back what they have for next events.
bool memory_budget_gives_lanes_back(const struct memory_budget *budget, uint32_t lanes);

// Set the limit of entries and the sampling level. Return whether stacks should be merged now.
bool memory_budget_update(struct memory_budget *budget, const struct memory_use *use);

// Note that merging has left so many entries. If they are still too many, the table is full.
void memory_budget_merged(struct memory_budget *budget, uint64_t entries);

// Return whether new stacks are merged while there are so many entries.
bool memory_budget_is_full(const struct memory_budget *budget, uint64_t entries);

// Return whether a merged stack may add one more node or row to a full table.
bool memory_budget_adds(struct memory_budget *budget);
