// SPDX-License-Identifier: MIT
// test_nursery: lanes with nurseries of one process, and the recorder's drain, in one process, with
// a clock that the test sets.
//
// Context: tests only, after cmocka.h.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "recorder/ingest/drain.h"
#include "recorder/ingest/test_session.h"
#include "target/producer/nursery/nursery.h"

enum {
    TEST_LANES_MAX = 4,
    TEST_STACKS = 6, // of one lane
};

struct test_nursery {
    struct test_session on;
    struct lane_producer lanes[TEST_LANES_MAX];
    uint32_t lane_count;
    struct freed_table freed;
    uint64_t clock_ms;
    uint64_t monotonic_ns;
};

static inline uint64_t test_address(uint32_t index)
{
    return 0x7f0000001010 + (uint64_t)index * 48;
}

// Open a lane and begin a tick in it.
static inline void
test_nursery_open_lane(struct test_nursery *f, uint32_t process, struct lane_producer *p)
{
    test_session_add_lane(&f->on, process, p);
    p->freed = &f->freed;
    nursery_init(p);
    assert_true(nursery_begin(p));
    test_session_define_stacks(p, TEST_STACKS);
}

// `flags` are enum session_flags.
static inline void test_nursery_open(struct test_nursery *f, uint32_t lane_count, uint32_t flags)
{
    *f = (struct test_nursery){.clock_ms = 1, .lane_count = lane_count};
    test_session_open(&f->on, SESSION_FOLLOW_CHILDREN | flags);
    const uint32_t process = test_session_add_process(&f->on);
    for (uint32_t i = 0; i < lane_count; i++) {
        test_nursery_open_lane(f, process, f->lanes + i);
    }
}

static inline void test_nursery_close(struct test_nursery *f)
{
    test_session_close(&f->on);
}

// What a thread holds is the sum of its held blocks.
static inline void test_nursery_check(const struct test_nursery *f)
{
    for (uint32_t i = 0; i < f->lane_count; i++) {
        struct lane_header *lane = f->lanes[i].lane;
        const struct nursery_block *blocks = lane_nursery_tables(lane)->blocks;
        uint64_t bytes = 0;
        for (uint32_t k = 0; k < NURSERY_BLOCKS; k++) {
            bytes += nursery_is_held(blocks + k) ? nursery_size(blocks[k].kind) : 0;
        }
        assert_int_equal(nursery_relaxed(&lane->nursery.held_bytes), bytes);
    }
}

// Begin a reallocation as record_realloc_begins() does.
static inline struct freed_note test_begin_move(struct lane_producer *p, uint64_t address)
{
    const uint64_t stamp = nursery_move_stamp(p);
    atomic_store(&p->lane->pending_stamps[LANE_PENDING_REALLOC], stamp);
    return nursery_begin_move(p, address, stamp);
}

// Tell the threads that time has passed.
static inline void test_nursery_advance(struct test_nursery *f, uint64_t ms)
{
    f->clock_ms += ms;
    atomic_store(&f->on.session.header->clock_ms, f->clock_ms);
}

// The recorder reads all lanes, up to the moment at which it looked for dead processes.
static inline void test_nursery_read(struct test_nursery *f, bool is_last)
{
    bool was_busy;
    f->monotonic_ns += 700000;
    drain_note_time(&f->on.drain, f->clock_ms, f->monotonic_ns);
    assert_int_equal(drain_pass(&f->on.drain, f->clock_ms, is_last, &was_busy), ERR_OK);
}

static inline void test_nursery_pass(struct test_nursery *f, bool is_last)
{
    drain_find_dead(&f->on.drain);
    test_nursery_read(f, is_last);
}

// Open a session with one lane, in a tick in which it may hold.
static inline struct lane_producer *test_nursery_open_one(struct test_nursery *f)
{
    test_nursery_open(f, 1, SESSION_ALWAYS_HOLD);
    test_nursery_advance(f, 4); // in the first tick sizes are learnt
    assert_true(nursery_begin(f->lanes));
    return f->lanes;
}
