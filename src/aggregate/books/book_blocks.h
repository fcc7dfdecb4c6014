// SPDX-License-Identifier: MIT
// book_blocks: single blocks that threads report (--blocks), on their way to the list of blocks.
// target/producer/book/block_records.h says what threads send.
//
//   BLOCK_BORN   a block was allocated after peak n       -> block_births
//   BLOCK_FREED  a block was freed after peak n           -> waits -> block_list, if it was live
//   words        a block is live as its process ends      -> block_list
//
// The records of several threads come in any order. That a block is younger than the peak may be
// read a pass later than its free, and so may be the row of its stack. So a free waits until two
// passes have ended, and until its peak is the latest one of the shared sum: a thread that is alone
// knows a peak before the sum does.
//
// A record that names no row is of a lane that its program overwrote, or of a process that was
// killed before its thread said which row it is: it is counted (unnamed). So is one that comes when
// BOOK_BLOCKS_WAIT_MAX wait.
// Owns: what waits. Borrows the list; with no other field set the object is empty.
// Context: H, as aggregator.h. Failure: ERR_NO_MEMORY.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "aggregate/block_list.h"
#include "base/err.h"
#include "host/containers/vec.h"
#include "session/books/block_words.h"

#define BOOK_BLOCKS_WAIT_MAX (1u << 22)

struct aggregator;
struct aggregator_process;

// A block that was freed.
struct freed_block {
    struct word_block block;
    uint64_t freed_ms;
    uint32_t peak_number; // that its free has seen
    uint32_t process;     // in the recording
    uint32_t row;         // of the row table; REC_NONE: not known yet
    bool is_of_earlier_pass;
};
DEFINE_VEC(freed_block_vec, struct freed_block);

struct book_blocks {
    struct block_list *list;      // borrowed
    struct freed_block_vec freed; // that wait
    uint32_t seen_number;         // of the latest peak that was seen
    uint64_t unnamed;
};

void book_blocks_release(struct book_blocks *blocks);

// A block of the process was allocated after peak `peak_number`. Its birth is exact.
enum err book_blocks_born(struct book_blocks *blocks,
                          const struct aggregator_process *process,
                          const struct word_block *block,
                          uint32_t peak_number) MUST_USE;

// `freed` was freed; its row is not known yet.
enum err book_blocks_freed(struct book_blocks *blocks, const struct freed_block *freed) MUST_USE;

// Note that by now_ms the peak of that number has been seen. Return whether it is a new one, and
// noted.
bool book_blocks_see_peak(struct book_blocks *blocks, uint32_t peak_number, uint64_t now_ms);

// A pass has ended; `is_last`: nothing waits any longer.
enum err book_blocks_end_pass(struct aggregator *aggregator, bool is_last) MUST_USE;

// All records of a process have been read, and it is about to end: find the rows of its blocks.
void book_blocks_end_process(struct aggregator *aggregator,
                             const struct aggregator_process *process);

// A block was live when its process ended; `was_there` as in block_list_ended.
enum err book_blocks_live(struct aggregator *aggregator,
                          const struct aggregator_process *process,
                          const struct word_block *block,
                          struct block_shares *shares,
                          bool was_there) MUST_USE;
