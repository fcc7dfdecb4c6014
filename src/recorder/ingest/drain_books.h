// SPDX-License-Identifier: MIT
// drain_books: the part of a pass (drain.h) for the books of threads (target/producer/book): what
// waits for others, and the shared sum, whose maximum is the peak.
//
// The sum has the live bytes of all processes. Threads add theirs. The recorder adds for those that
// cannot: it adds what a killed thread had not added, and subtracts the blocks of a process that
// has ended.
//
// Context: H. Failure: ERR_NO_MEMORY, ERR_LIMIT.
#pragma once

#include "aggregate/books/listed_block.h"
#include "base/err.h"
#include "recorder/ingest/drain.h"
#include "recorder/session/block_words_list.h"

// Add the part of a thread whose book is being taken under the lock of its lane.
void drain_books_send_part(struct drain *drain, struct lane_header *lane);

// The thread of a lane has ended: add what it has not added, unless it did so itself.
void drain_books_end_lane(struct drain *drain, const struct lane_header *lane);

// A process is about to end: its blocks leave the sum. With --blocks they are listed.
enum err drain_books_end_process(struct drain *drain, uint32_t slot) MUST_USE;

// It has ended: at later peaks than the one at which its blocks left the sum it held nothing.
void drain_books_ended_process(const struct drain *drain, struct aggregator_process *process);

// List the live blocks of a process, in the order of their addresses. `goes_on`, or NULL, is called
// each millisecond, and may drain; if it returns false, the list is left.
enum err drain_books_list_blocks(const struct drain *drain,
                                 const struct aggregator_process *process,
                                 bool (*goes_on)(void *context),
                                 void *context,
                                 struct listed_block_vec *out) MUST_USE;

// Return whether a block of the process has ever begun in a range of its memory; also if that is
// unknown. *places, at first NULL, is for further ranges at that moment; free it.
bool drain_books_had_blocks(const struct drain *drain,
                            const struct aggregator_process *process,
                            uint64_t start,
                            uint64_t end,
                            struct block_words_places **places);

// The recording has ended: with --blocks, list the live blocks of the processes that have not.
enum err drain_books_list_running(struct drain *drain) MUST_USE;

// The lanes of a pass have been read.
enum err drain_books_end_pass(struct drain *drain) MUST_USE;
