// SPDX-License-Identifier: MIT
// lane_reader: reads one lane into the aggregator.
//
// Records are decoded from a private copy, a piece at a time.
// Trust: none. A violation of wire.h returns ERR_CORRUPT, and the lane is not read again.
// Memory: a piece and the dictionaries.
// Context: H, the recorder's main thread.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregate/aggregator.h"
#include "base/err.h"
#include "host/containers/vec.h"
#include "recorder/lanes/lane_dictionary.h"
#include "recorder/lanes/lane_fault.h"
#include "recorder/lanes/lane_texts.h"
#include "recorder/session/lane_consumer.h"

#define LANE_READER_PIECE_WORDS (2 * WIRE_RECORD_BYTES_MAX / 8)

// The thread's latest query; number 0: none, or answered.
struct lane_query {
    uint32_t number;
    uint32_t what;   // as sent: may not be an enum stats_query_what
    uint32_t scope;  // as sent
    uint32_t passes; // that have ended since it was read
    uint64_t tick_ms;
};

struct lane_reader {
    struct lane_consumer consumer;
    struct aggregator_thread thread;
    struct lane_dictionary dictionary;
    struct lane_texts texts;
    uint64_t *piece;      // owned: LANE_READER_PIECE_WORDS words, NULL until the first one
    size_t piece_len;     // words copied
    size_t piece_at;      // words counted
    uint64_t events;      // allocations and frees counted in all
    struct u64_vec taken; // records taken from the thread's book, behind the ring's byte taken_pos
    uint64_t taken_pos;
    struct lane_query query;
    struct lane_fault fault;        // of a record
    uint64_t peeked_pos;            // how far lane_reader_peek_executable has read
    uint64_t unsampled_allocations; // of the lane, as the aggregator knows them
    uint64_t unsampled_bytes;
    uint64_t missed_allocations;
    uint64_t missed_frees;
    uint64_t unknown_frees;
};

// Return whether there is anything to read.
static inline bool lane_reader_has_unread(const struct lane_reader *reader)
{
    return reader->piece_at < reader->piece_len ||
           lane_consumer_unread_bytes(&reader->consumer) > 0 || reader->taken.len > 0;
}

// Discard all unread records.
void lane_reader_discard(struct lane_reader *reader);

// Free the memory for records while there are none.
void lane_reader_shrink(struct lane_reader *reader);

// Start to read `lane` from its beginning as a thread of `process`.
void lane_reader_init(struct lane_reader *reader,
                      struct lane_header *lane,
                      uint32_t lane_index,
                      struct aggregator_process *process,
                      uint32_t thread_id,
                      uint64_t start_ms);
void lane_reader_release(struct lane_reader *reader);

// Search the unread records for the text that names the executable of the process, and note it;
// counts and takes nothing.
enum err lane_reader_peek_executable(struct lane_reader *reader, struct aggregator *aggregator)
    MUST_USE;

// The thread has ended, and all that it counted is read: none of its stacks has a row any more.
// ERR_NO_MEMORY.
enum err lane_reader_leave_rows(struct lane_reader *reader, const struct aggregator *aggregator)
    MUST_USE;

// Count the unread records (as of the consumer's last refresh). A time later than `latest_ms` is
// false, and counts as that. ERR_CORRUPT: the lane broke the rules. ERR_NO_MEMORY, ERR_LIMIT: the
// aggregator is full.
enum err lane_reader_run(struct lane_reader *reader,
                         struct aggregator *aggregator,
                         uint64_t latest_ms) MUST_USE;
