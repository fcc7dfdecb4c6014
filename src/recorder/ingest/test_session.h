// SPDX-License-Identifier: MIT
// test_session: both sides of a session in one process: a recorded process, and the recorder's
// aggregator and drain.
//
// Context: tests only, after cmocka.h.
#pragma once

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "aggregate/aggregator.h"
#include "recorder/ingest/drain.h"
#include "recorder/ingest/test_recorder.h"
#include "recorder/session/session_create.h"
#include "target/producer/lane_producer.h"
#include "target/producer/session_join.h"
#include "target/producer/words/process_words.h"

struct test_session {
    struct session session;
    struct session_mapping mapping; // as in a recorded process
    struct aggregator aggregator;
    struct drain drain;
};

// Make a running session at 1 ms. `flags` are enum session_flags.
static inline void test_session_open(struct test_session *t, uint32_t flags)
{
    const struct session_options options = {.flags = flags, .max_frames = 64};
    assert_int_equal(session_create(&options, &t->session, NULL), ERR_OK);
    atomic_store(&t->session.header->state, SESSION_RUNNING);
    atomic_store(&t->session.header->clock_ms, 1);
    assert_int_equal(session_join(t->session.environment, &t->mapping), ERR_OK);
    memset(&t->aggregator, 0, sizeof(t->aggregator));
    assert_int_equal(aggregator_init(&t->aggregator), ERR_OK);
    memset(&t->drain, 0, sizeof(t->drain));
    assert_int_equal(drain_init(&t->drain, &t->session, &t->aggregator, NULL), ERR_OK);
}

static inline void test_session_close(struct test_session *t)
{
    drain_release(&t->drain);
    aggregator_release(&t->aggregator);
    assert_int_equal(munmap(t->mapping.header, SESSION_BYTES), 0);
    session_release(&t->session);
}

// Join this process; return its index.
static inline uint32_t test_session_add_process(struct test_session *t)
{
    uint32_t index;
    assert_int_equal(session_claim_process(t->mapping.header, &index), ERR_OK);
    struct process_slot *slot = session_process(t->mapping.header, index);
    slot->pid = (uint32_t)getpid();
    slot->pid_namespace = t->session.pid_namespace; // else each test searches /proc
    slot->start_ms = 1;
    atomic_store(&slot->state, PROCESS_ACTIVE);
    return index;
}

// Open a lane of that process.
static inline void
test_session_add_lane(struct test_session *t, uint32_t process, struct lane_producer *p)
{
    struct lane_header *lane;
    assert_int_equal(session_claim_lane(&t->mapping, process, (uint32_t)getpid(), &lane), ERR_OK);
    lane_producer_init(p, t->mapping.header, lane);
}

// Define a stack of one frame, 0x1000 + slot, in each slot from 0 to `count`.
static inline void test_session_define_stacks(struct lane_producer *p, uint32_t count)
{
    for (uint32_t slot = 0; slot < count; slot++) {
        uint64_t *frames = lane_producer_begin_stack(p, slot, WIRE_STACK_HAS_SLOT, 0, 1);
        assert_non_null(frames);
        frames[0] = 0x1000 + slot;
        lane_producer_advance(p, lane_stack_words(1));
    }
    lane_producer_publish(p);
}

static inline long test_session_open_again(const void *session)
{
    return dup(((const struct session *)session)->memfd);
}

// Open the words of the process of number 1. NULL: they cannot be opened.
static inline struct process_words *test_session_open_words(const struct test_session *t)
{
    struct process_words *words = process_words_new();
    const struct words_source source = {
        .base = SESSION_WORDS_OFFSET, .open = test_session_open_again, .context = &t->session};
    return words != NULL && process_words_open(words, &source, 1, NULL) == ERR_OK ? words : NULL;
}
