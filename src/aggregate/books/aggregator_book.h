// SPDX-License-Identifier: MIT
// aggregator_book: adds up what threads counted in their own books (target/producer/book).
//
//   ROW    a thread's stack has a number                 aggregator_book_row
//   BOOK   so much was allocated and freed in a row      aggregator_book_add
//   pass   the sum of all threads, and its peak          aggregator_book_peak
//
// An entry of a chosen block counts as often as its weight says (session/books/sampling_level.h).
//
// Entries add up in any order. But those of one thread may say that blocks were freed before those
// of another one say that they were allocated. A row never shows that: the frees of such an entry
// wait, in the debts of its process, until the rest is there. Its allocations do not wait: two
// entries could else wait for each other, one for the other's blocks, and that one for its bytes.
// What never gets its rest was false, and is not counted.
//
//   row: 2 blocks of 10    entry 1: one of 1000, four of 10 freed    more blocks than there are
//                          entry 2: three of 10, one of 1000 freed   more bytes
//
// A number is given back when its thread has left it and all its blocks are freed. All allocations
// are counted by then, so each free was, too: no word has the number, no thread is about to count a
// free of it, and no entry of it is under way. Until its thread leaves it, `live` may be below 0.
//
// Peak. Each entry says what its events added before and since the newest peak that they had seen
// (session/books/peak_share.h). A row keeps the same, in peak_bytes and its peak's number. So rows
// need no order either. The peak itself is the shared sum's.
//
// Context: H, as aggregator.h.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "aggregate/aggregator_process.h"
#include "base/err.h"
#include "session/books/book_layout.h"
#include "session/books/shared_sum.h"

struct aggregator;
struct aggregator_thread;

// Note that the stack at `node` of this thread has the row of that number, which is of a range of
// that level. ERR_CORRUPT: the number is in use, or far beyond all others.
enum err aggregator_book_row(const struct aggregator_thread *thread,
                             uint32_t number,
                             uint32_t level,
                             uint32_t node) MUST_USE;

// No slot has the number any more, and its thread has sent all that it allocated with it. Once no
// block of it lives it is added to process->book_unused. With a list of blocks it stays in use: the
// list knows blocks by it.
enum err aggregator_book_leave(const struct aggregator *aggregator,
                               struct aggregator_process *process,
                               uint32_t number) MUST_USE;

// Count an entry of the thread, or keep it until it can be counted.
enum err aggregator_book_add(struct aggregator *aggregator,
                             struct aggregator_thread *thread,
                             const struct book_entry *entry) MUST_USE;

// Count what can be counted of the entries that wait. At the end of a pass.
enum err aggregator_book_settle(struct aggregator *aggregator, struct aggregator_process *process)
    MUST_USE;

// Take over the peak of the shared sum, if it is a new one. It may be off by `error_bytes`, which
// may rise as long as it is the latest peak.
void aggregator_book_peak(struct aggregator *aggregator,
                          const struct sum_value *value,
                          uint64_t error_bytes);

// Return the variance of the peak, which chosen blocks have. A live one that stands for w blocks
// adds w * (w - 1) * size^2: an unbiased estimate.
double aggregator_book_variance(const struct aggregator *aggregator);

// Return the weight of a block of the row with that number.
uint64_t aggregator_book_weight(const struct aggregator *aggregator,
                                const struct aggregator_process *process,
                                uint32_t number,
                                uint64_t size_bytes);

// Return the row of that number; REC_NONE: it has had no allocation.
uint32_t aggregator_book_row_of(const struct aggregator_process *process, uint32_t number);
