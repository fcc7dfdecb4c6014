// SPDX-License-Identifier: MIT
// book: a thread's own book. It counts what each row allocated and freed, and sends sums.
//
//   malloc   put the block's word     -> count an allocation of its row
//   free     take the block's word    -> count a free of the word's row, whichever thread has it
//
// Words (words/live_words.h) pair each free with its block, so no event needs an order among
// threads, and the recorder only adds. A counter holds the events of one row in this tick
// (session/books/book_layout.h). It is sent when another row needs its place, when a cell is full
// of another kind, and every BOOK_HOLD_MS.
//
// Rows have numbers that all threads of the process share, because a thread counts frees of another
// thread's row. A thread takes a number at the first block of a stack (words/row_numbers.h), and
// says so in its lane (ROW) before the first word with that number exists. When the stack loses its
// slot, the thread sends what it has counted of the row, and allocates nothing with that number any
// more. The next ROW of the slot tells the recorder, which gives the number back once all blocks of
// the row are freed. That ROW is sent for a block: so the thread's latest allocation is that one,
// and none of the old number can be taken for it (temporary blocks).
//
// Sum. Each event changes the thread's part of the shared sum (session/books/shared_sum.h), whose
// maximum is the peak. A counter notes which peak its events have seen (peak_share.h).
//
// Killed. A word and its count are two stores, so a killed thread loses at most one event. A
// counter that is being sent says so, and `book_head.mark` says where its record ends: the recorder
// sees whether that was published.
//
// Blocks of signal handlers in the middle of a hook have a word of BOOK_ROW_LATER at once, because
// another thread may free them before their event is counted (record.c). Who frees such a block
// counts nothing; who allocated it finds the word gone, and counts both.
//
// Sampling. Each row has one level (sampling_level.h): the level of its thread when the row got its
// number. A block with a weight is sent at once, alone, and counts as often as its weight says.
//
// A process that has no memory for words keeps no books.
//
// Context: T, the lane's thread under the guard, after lane_enter; book_take and book_put_back
// also without. False: the recording has ended.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bucket.h"
#include "base/compiler.h"
#include "session/books/book_layout.h"
#include "target/producer/lane_producer.h"
#include "target/producer/words/live_entries.h"

#define BOOK_ROW_LATER WORD_ROW_MAX

// Whether the thread keeps a book.
ALWAYS_INLINE bool book_is_kept(const struct lane_producer *p)
{
    return p->words != NULL;
}

// Begin to keep a book in a lane that was just claimed. `rows`: memory for the number of the row of
// each stack slot, zero.
void book_begin(struct lane_producer *p, struct process_words *words, uint32_t *rows);

// Whether each event is sent at once, because scopes were opened or closed.
void book_follow_scopes(struct lane_producer *p);

// Begin a tick.
void book_begin_tick(struct lane_producer *p, uint64_t time_ms);

// End it, or leave it to the recorder: add the thread's part of the sum.
void book_end(struct lane_producer *p);

// Take the blocks of the process in `slot`, which is this one as it exits, out of the sum.
void book_leave(const struct process_words *words, struct session_header *session, uint32_t slot);

// Do the same with an earlier image of this process, whose threads are gone.
void book_leave_image(const struct process_words *words,
                      struct session_header *session,
                      uint32_t slot);

// Return the interval of that level in this session; 0: every block is recorded.
uint64_t book_interval(const struct session_header *session, uint32_t level);

// Another stack gets the slot: send what was counted of the row of the one before.
bool book_leave_row(struct lane_producer *p, uint32_t slot) MUST_USE;

// Give the stack in `slot` a row of the thread's level, and tell the recorder.
bool book_define_row(struct lane_producer *p, uint32_t slot) MUST_USE;

// Count a block of the stack in `slot`, after the allocator returned it.
bool book_allocate(struct lane_producer *p, uint64_t address, uint64_t size_bytes, uint32_t slot)
    MUST_USE;

// Count the free of a block, before the allocator is called.
bool book_free(struct lane_producer *p, uint64_t address) MUST_USE;

// Count the free of a block whose word was taken; of row 0: it had none.
bool book_count_freed(struct lane_producer *p, const struct word_block *block) MUST_USE;

// Take the word of a block that is about to be freed or moved. Its row is 0 if it has none.
struct word_block book_take(struct process_words *words, uint64_t address) MUST_USE;

// Store a word that was taken, because the block stays.
void book_put_back(struct process_words *words, const struct word_block *block);

// Give a block of a handler its word until book_allocate_later counts it.
void book_put_later(struct process_words *words, uint64_t address, uint64_t size_bytes);

// Count a block that has such a word, or had it until it was freed.
bool book_allocate_later(struct lane_producer *p,
                         uint64_t address,
                         uint64_t size_bytes,
                         uint32_t slot) MUST_USE;

// End what is stale at the address of a block that is not recorded.
void book_pass(struct lane_producer *p, uint64_t address, uint64_t size_bytes);

// Whether the book is to be sent in the tick that begins at time_ms.
bool book_is_due(const struct lane_producer *p, uint64_t time_ms);

// Send all counters.
bool book_send_all(struct lane_producer *p) MUST_USE;

// Complete what was interrupted, after a hook was left half way.
void book_recover(struct lane_producer *p);
