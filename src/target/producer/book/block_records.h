// SPDX-License-Identifier: MIT
// block_records: what a thread sends of single blocks, with --blocks (SESSION_BLOCKS).
//
// The recorder lists the blocks that were live at the peak. Words say which blocks are live at the
// end. Of those that were freed after the peak, the thread that frees them says so (BLOCK_FREED).
// Whether a block is older than the peak, its birth says, but for blocks of about the time of the
// peak. Of these, the thread that allocates them says that they are younger (BLOCK_BORN).
//
//   event of a block with the latest peak n        sent
//     allocated, and the birth shows that          -
//     allocated, else                              BLOCK_BORN with n
//     freed, and the birth shows that it is        -
//       younger than n
//     freed, else                                  BLOCK_FREED with n
//
// The number of the latest peak is the one that the counter of the event has seen (book_cells.h).
// So the list has exactly the blocks that the rows count at the peak, in whatever order the
// records are read. A block was live at peak m if no BLOCK_BORN of it has m or a higher number, its
// birth is not later than the moment when the recorder saw m, and it was freed with m, a higher
// number, or never.
//
// What a birth shows. The recorder publishes the latest peak that it has seen, and then the time
// (seen_peak: number 32 | ms 32). Births of blocks that are older than that peak are not later. So
// a block with a later birth is younger. Births are compared as words state them (block_words.h).
//
// After the last peak of a program, its threads send nothing but frees of blocks of that time.
// Context: T, as book.h.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "session/books/block_words.h"
#include "session/books/seen_peak.h"
#include "target/producer/lane_producer.h"

ALWAYS_INLINE bool book_lists_blocks(const struct lane_producer *p)
{
    return UNLIKELY((p->session->flags & SESSION_BLOCKS) != 0);
}

// Whether a block with that birth, which a word states, shows that it is younger than the peak.
static inline bool
book_is_younger(const struct lane_producer *p, uint64_t stated_ms, uint32_t peak_number)
{
    // Acquire: pairs with the recorder's release, after it saw the peak and read the time.
    const uint64_t seen = atomic_load_explicit(&p->session->seen_peak, memory_order_acquire);
    return seen_peak_number(seen) >= peak_number && stated_ms > seen_peak_ms(seen);
}

// Send a record of the block; `last` is its last word. false: the recording has ended.
static NOINLINE bool book_send_block(struct lane_producer *p,
                                     const struct word_block *block,
                                     enum wire_tag tag,
                                     uint64_t last)
{
    uint64_t *word = lane_producer_reserve(p, WIRE_BLOCK_WORDS);
    if (word == NULL) {
        return false;
    }
    word[0] = wire_word(tag, block->address);
    word[1] = (uint64_t)block->row << WIRE_BIRTH_BITS |
              (block->birth_ms & (((uint64_t)1 << WIRE_BIRTH_BITS) - 1));
    word[2] = block->size_bytes;
    word[3] = last;
    lane_producer_advance(p, WIRE_BLOCK_WORDS);
    lane_producer_publish(p);
    return true;
}

// After a block was allocated now and counted.
static inline bool
book_block_born(struct lane_producer *p, const struct word_block *block, uint32_t peak_number)
{
    const uint64_t stated_ms = block_birth_stated(block->birth_ms, block->size_bytes);
    return book_is_younger(p, stated_ms, peak_number) ||
           book_send_block(p, block, WIRE_BLOCK_BORN, peak_number);
}

// After the free of a block was counted, and before its address is given away.
static inline bool
book_block_freed(struct lane_producer *p, const struct word_block *block, uint32_t peak_number)
{
    return book_is_younger(p, block->birth_ms, peak_number) ||
           book_send_block(p, block, WIRE_BLOCK_FREED, peak_number | p->now_ms << 32);
}
