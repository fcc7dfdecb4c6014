// SPDX-License-Identifier: MIT
// test_books: records of books with one event each, and of rows.
//
// Context: tests only.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/bucket.h"
#include "session/books/book_layout.h"
#include "session/wire.h"
#include "target/producer/lane_producer.h"

enum test_event {
    TEST_ALLOCATION,
    TEST_FREE,
    TEST_TEMPORARY_FREE,
};

// Write the record of an event of a row. Return its words, at most BOOK_WORDS_MAX.
static inline size_t
test_book_of(enum test_event event, uint32_t row, uint64_t size_bytes, uint64_t *words)
{
    const uint64_t cell = book_cell_with(0, size_bytes);
    struct book_counter counter = {.row = row};
    if (event == TEST_ALLOCATION) {
        counter.sizes_used = 1;
        counter.size_buckets[0] = (uint8_t)bucket_of(size_bytes);
        counter.sizes[0] = cell;
    } else {
        counter.lives_used = 1;
        counter.lives[0] = cell;
        counter.temporary = event == TEST_TEMPORARY_FREE ? cell : 0;
    }
    return book_record(&counter, words);
}

// Send words as one record. Does nothing if the recording has ended.
static inline void test_send(struct lane_producer *p, const uint64_t *words, size_t count)
{
    uint64_t *to = lane_producer_reserve(p, count);
    for (size_t i = 0; to != NULL && i < count; i++) {
        to[i] = words[i];
    }
    if (to != NULL) {
        lane_producer_advance(p, count);
        lane_producer_publish(p);
    }
}

// Send an event of a row.
static inline void
test_send_event(struct lane_producer *p, enum test_event event, uint32_t row, uint64_t size_bytes)
{
    uint64_t words[BOOK_WORDS_MAX];
    test_send(p, words, test_book_of(event, row, size_bytes, words));
}

// Give the stack in a slot the row of that number.
static inline void test_send_row(struct lane_producer *p, uint32_t slot, uint32_t row)
{
    const uint64_t word = wire_row(slot, row, 0);
    test_send(p, &word, 1);
}
