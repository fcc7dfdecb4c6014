// SPDX-License-Identifier: MIT
// test_drain: a session whose threads and processes a test plays, and the drain that reads it.
//
// Context: tests only, after cmocka.h.
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "recorder/ingest/drain.h"
#include "recorder/ingest/test_books.h"
#include "recorder/ingest/test_session.h"
#include "target/producer/lane_producer.h"
#include "target/producer/session_join.h"

enum {
    DEADLINE_S = 500, // of a hang; a loaded machine with ThreadSanitizer has taken over 120
    SLOT = 7,         // of the one stack that test lanes define
};

struct fixture {
    struct test_session on;
    uint64_t clock_ms;
};

static inline void open_fixture(struct fixture *f)
{
    *f = (struct fixture){.clock_ms = 1};
    test_session_open(&f->on, SESSION_FOLLOW_CHILDREN);
}

static inline void close_fixture(struct fixture *f)
{
    test_session_close(&f->on);
}

static inline uint32_t join(struct fixture *f, uint32_t pid, uint32_t flags)
{
    uint32_t index;
    assert_int_equal(session_claim_process(f->on.mapping.header, &index), ERR_OK);
    struct process_slot *slot = session_process(f->on.mapping.header, index);
    slot->pid = pid;
    slot->parent_pid = 1;
    slot->flags = flags;
    slot->start_ms = 1;
    slot->join_number = atomic_fetch_add(&f->on.mapping.header->join_count, 1);
    atomic_store(&slot->state, PROCESS_ACTIVE);
    return index;
}

// The row of the lane's stack: each lane has its own.
static inline uint32_t row_of(const struct lane_producer *p)
{
    const char *lanes = (const char *)session_lane(p->session, 0);
    return 1 + (uint32_t)((size_t)((const char *)p->lane - lanes) / LANE_STRIDE);
}

static inline void define_stack(struct lane_producer *p)
{
    uint64_t *frames = lane_producer_begin_stack(p, SLOT, WIRE_STACK_HAS_SLOT, 0, 2);
    assert_non_null(frames);
    frames[0] = 0x1000; // no module: plain pcs
    frames[1] = 0x2000;
    lane_producer_advance(p, lane_stack_words(2));
    test_send_row(p, SLOT, row_of(p));
}

static inline void open_lane(struct fixture *f, uint32_t process, struct lane_producer *p)
{
    struct lane_header *lane;
    assert_int_equal(session_claim_lane(&f->on.mapping, process, (uint32_t)getpid(), &lane),
                     ERR_OK);
    lane_producer_init(p, f->on.mapping.header, lane);
    assert_true(lane_producer_tick(p));
    define_stack(p);
    lane_producer_publish(p);
}

// Send an event of the lane's stack.
static inline void send_allocation(struct lane_producer *p, uint64_t size_bytes)
{
    test_send_event(p, TEST_ALLOCATION, row_of(p), size_bytes);
}

static inline void send_free(struct lane_producer *p, uint64_t size_bytes)
{
    test_send_event(p, TEST_FREE, row_of(p), size_bytes);
}

// A pass at f->clock_ms.
static inline void pass_now(struct fixture *f)
{
    bool was_busy;
    for (uint64_t i = 0; i < 2; i++) { // it was as late a while ago, too
        drain_note_time(&f->on.drain, f->clock_ms, (2 * f->clock_ms + i) * 1000000);
    }
    assert_int_equal(drain_pass(&f->on.drain, f->clock_ms, false, &was_busy), ERR_OK);
}

static inline void pass(struct fixture *f)
{
    drain_find_dead(&f->on.drain);
    f->clock_ms++;
    atomic_store(&f->on.session.header->clock_ms, f->clock_ms);
    pass_now(f);
}

// What threads did with a stack, and its row must have.
struct test_sums {
    _Atomic uint64_t allocations;
    _Atomic uint64_t allocated_bytes;
    _Atomic uint64_t frees;
    _Atomic uint64_t freed_bytes;
};

static inline void test_sums_allocate(struct test_sums *sums, uint64_t size_bytes)
{
    atomic_fetch_add(&sums->allocations, 1);
    atomic_fetch_add(&sums->allocated_bytes, size_bytes);
}

static inline void test_sums_free(struct test_sums *sums, uint64_t size_bytes)
{
    atomic_fetch_add(&sums->frees, 1);
    atomic_fetch_add(&sums->freed_bytes, size_bytes);
}

static inline void assert_row_has(const struct rec_row *row, const struct test_sums *sums)
{
    assert_int_equal(row->allocations, sums->allocations);
    assert_int_equal(row->allocated_bytes, sums->allocated_bytes);
    assert_int_equal(row->frees, sums->frees);
    assert_int_equal(row->freed_bytes, sums->freed_bytes);
}

struct test_clock {
    struct session_header *session;
    pthread_t thread;
    _Atomic bool is_over;
};

static inline void *run_test_clock(void *argument)
{
    struct test_clock *clock = argument;
    while (!atomic_load(&clock->is_over)) {
        atomic_fetch_add(&clock->session->clock_ms, 1);
        clock_sleep_ns(NS_PER_MS);
    }
    return NULL;
}

// As the recorder's does, the clock runs by itself: a pass over full lanes may take longer on a
// busy machine than threads wait for a clock that stands still.
static inline void begin_test_clock(struct test_clock *clock, const struct fixture *f)
{
    *clock = (struct test_clock){.session = f->on.session.header};
    assert_int_equal(pthread_create(&clock->thread, NULL, run_test_clock, clock), 0);
}

static inline void end_test_clock(struct test_clock *clock)
{
    atomic_store(&clock->is_over, true);
    assert_int_equal(pthread_join(clock->thread, NULL), 0);
}

static inline void pass_beside_clock(struct fixture *f)
{
    drain_find_dead(&f->on.drain);
    f->clock_ms = atomic_fetch_add(&f->on.session.header->clock_ms, 1) + 1;
    pass_now(f);
}

static inline uint64_t now_s(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec;
}
