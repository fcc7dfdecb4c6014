// SPDX-License-Identifier: MIT
// test_lanes: lanes of one process without books, or one with a book, and the recorder's drain, in
// one process, with a clock that the test sets.
//
// Context: tests only, after cmocka.h.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "recorder/ingest/drain.h"
#include "recorder/ingest/test_session.h"
#include "target/producer/entry/lane_entry.h"

enum {
    TEST_LANES_MAX = 4,
    TEST_STACKS = 6, // of one lane
};

struct test_lanes {
    struct test_session on;
    struct lane_producer lanes[TEST_LANES_MAX];
    uint32_t lane_count;
    uint32_t rows[1024]; // of the lane with a book
    uint64_t clock_ms;
    uint64_t monotonic_ns;
};

static inline uint64_t test_address(uint32_t index)
{
    return 0x7f0000001010 + (uint64_t)index * 48;
}

// Open a lane and begin a tick in it.
static inline void
test_lanes_open_lane(struct test_lanes *f, uint32_t process, struct lane_producer *p)
{
    test_session_add_lane(&f->on, process, p);
    assert_true(lane_enter(p));
    test_session_define_stacks(p, TEST_STACKS);
}

static inline void test_lanes_open(struct test_lanes *f, uint32_t lane_count)
{
    *f = (struct test_lanes){.clock_ms = 1, .lane_count = lane_count};
    test_session_open(&f->on, SESSION_FOLLOW_CHILDREN);
    const uint32_t process = test_session_add_process(&f->on);
    for (uint32_t i = 0; i < lane_count; i++) {
        test_lanes_open_lane(f, process, f->lanes + i);
    }
}

static inline long test_lanes_open_again(const void *session)
{
    return dup(((const struct session *)session)->memfd);
}

// Open a session with one lane, whose thread keeps a book.
static inline void test_lanes_open_book(struct test_lanes *f)
{
    *f = (struct test_lanes){.clock_ms = 5, .lane_count = 1};
    test_session_open(&f->on, SESSION_FOLLOW_CHILDREN | SESSION_BOOKS);
    atomic_store(&f->on.session.header->clock_ms, f->clock_ms);
    struct process_words *words = process_words_new();
    const struct words_source source = {
        .base = SESSION_WORDS_OFFSET, .open = test_lanes_open_again, .context = &f->on.session};
    assert_non_null(words);
    assert_int_equal(process_words_open(words, &source, 1, NULL), ERR_OK);
    test_session_add_lane(&f->on, test_session_add_process(&f->on), f->lanes);
    book_begin(f->lanes, words, f->rows);
    assert_true(lane_enter(f->lanes));
    test_session_define_stacks(f->lanes, TEST_STACKS);
    for (uint32_t slot = 0; slot < TEST_STACKS; slot++) {
        assert_true(book_define_row(f->lanes, slot));
    }
    lane_producer_publish(f->lanes);
}

static inline void test_lanes_close(struct test_lanes *f)
{
    test_session_close(&f->on);
}

// Begin a reallocation as record_realloc_begins() does.
static inline struct freed_note test_begin_move(struct lane_producer *p, uint64_t address)
{
    const uint64_t stamp = lane_move_stamp(p);
    atomic_store(&p->lane->pending_stamps[LANE_PENDING_REALLOC], stamp);
    return lane_begin_move(p, address, stamp);
}

// Tell the threads that time has passed.
static inline void test_lanes_advance(struct test_lanes *f, uint64_t ms)
{
    f->clock_ms += ms;
    atomic_store(&f->on.session.header->clock_ms, f->clock_ms);
}

// The recorder reads all lanes, up to the moment at which it looked for dead processes.
static inline void test_lanes_read(struct test_lanes *f, bool is_last)
{
    bool was_busy;
    f->monotonic_ns += 700000;
    drain_note_time(&f->on.drain, f->clock_ms, f->monotonic_ns);
    assert_int_equal(drain_pass(&f->on.drain, f->clock_ms, is_last, &was_busy), ERR_OK);
}

static inline void test_lanes_pass(struct test_lanes *f, bool is_last)
{
    drain_find_dead(&f->on.drain);
    test_lanes_read(f, is_last);
}
