// SPDX-License-Identifier: MIT
// test_lanes: lanes of one process, whose threads keep books, and the recorder's drain, in one
// process, with a clock that the test sets.
//
// Context: tests only, after cmocka.h.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/page.h"
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
    struct process_words *words;
    uint32_t rows[TEST_LANES_MAX][TEST_STACKS];
    uint64_t clock_ms;
    uint64_t monotonic_ns;
};

static inline uint64_t test_address(uint32_t index)
{
    return 0x7f0000001010 + (uint64_t)index * 48;
}

// Open a lane of that number, which is new or was closed, and begin a tick in it.
static inline void test_lanes_open_lane(struct test_lanes *f, uint32_t process, uint32_t lane)
{
    struct lane_producer *p = f->lanes + lane;
    test_session_add_lane(&f->on, process, p);
    book_begin(p, f->words, f->rows[lane]);
    assert_true(lane_enter(p));
    test_session_define_stacks(p, TEST_STACKS);
    for (uint32_t slot = 0; slot < TEST_STACKS; slot++) {
        assert_true(book_define_row(p, slot));
    }
    lane_producer_publish(p);
}

static inline void test_lanes_open(struct test_lanes *f, uint32_t lane_count)
{
    *f = (struct test_lanes){.clock_ms = 5};
    test_session_open(&f->on, SESSION_FOLLOW_CHILDREN);
    atomic_store(&f->on.session.header->clock_ms, f->clock_ms);
    f->words = test_session_open_words(&f->on);
    assert_non_null(f->words);
    const uint32_t process = test_session_add_process(&f->on);
    for (uint32_t i = 0; i < lane_count; i++) {
        test_lanes_open_lane(f, process, i);
    }
}

// The words of a process stay as long as it does; here another one follows.
static inline void test_lanes_close(struct test_lanes *f)
{
    for (uint32_t i = 0; i < WORDS_WINDOWS_MAX; i++) {
        void *room = (void *)grain_start(atomic_load(f->words->windows + i));
        if (room != NULL) {
            assert_int_equal(munmap(room, WORDS_GROUP * sizeof(struct words_region)), 0);
        }
    }
    test_session_close(&f->on);
}

// Begin a reallocation as record_realloc_begins() does.
static inline struct freed_note test_begin_move(const struct lane_producer *p, uint64_t address)
{
    return (struct freed_note){.is_taken = true, .taken = book_take(p->words, address)};
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
