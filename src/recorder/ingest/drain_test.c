// SPDX-License-Identifier: MIT
// drain on sessions that test threads and processes write into, as recorded ones would, and as
// broken or hostile ones could.
#include "recorder/ingest/drain.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/test_support/open_files.h"
#include "base/test_support/random_numbers.h"
#include "recorder/ingest/test_session.h"
#include "target/preload/process/stats_query.h"
#include "target/producer/lane_producer.h"
#include "target/producer/session_join.h"

enum {
    DEADLINE_S = 120, // of a hang; a loaded machine with ThreadSanitizer has taken 20
    SLOT = 7,         // of the one stack that test lanes define
};

struct fixture {
    struct test_session on;
    uint64_t clock_ms;
};

static void open_fixture(struct fixture *f)
{
    *f = (struct fixture){.clock_ms = 1};
    test_session_open(&f->on, SESSION_FOLLOW_CHILDREN);
}

static void close_fixture(struct fixture *f)
{
    test_session_close(&f->on);
}

static uint32_t join(struct fixture *f, uint32_t pid, uint32_t flags)
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

static void define_stack(struct lane_producer *p)
{
    uint64_t *frames = lane_producer_begin_stack(p, SLOT, WIRE_STACK_HAS_SLOT, 0, 2);
    assert_non_null(frames);
    frames[0] = 0x1000; // no module: plain pcs
    frames[1] = 0x2000;
    lane_producer_advance(p, lane_stack_words(2));
}

static void open_lane(struct fixture *f, uint32_t process, struct lane_producer *p)
{
    struct lane_header *lane;
    assert_int_equal(session_claim_lane(&f->on.mapping, process, (uint32_t)getpid(), &lane),
                     ERR_OK);
    lane_producer_init(p, f->on.mapping.header, lane);
    assert_true(lane_producer_tick(p));
    define_stack(p);
    lane_producer_publish(p);
}

static void send(struct lane_producer *p, const uint64_t *words, size_t count)
{
    uint64_t *to = lane_producer_reserve(p, count);
    if (to != NULL) {
        memcpy(to, words, count * sizeof(*to));
        lane_producer_advance(p, count);
        lane_producer_publish(p);
    }
}

// Send events with stamps, as several threads do.
static void send_allocation(struct lane_producer *p, uint64_t address, uint64_t size)
{
    const uint64_t words[] = {wire_word(WIRE_STAMP, stamp_now(p->session)),
                              wire_word(WIRE_ALLOC, address), wire_slot_size(SLOT, size)};
    send(p, words, 3);
}

static void send_free(struct lane_producer *p, uint64_t address)
{
    const uint64_t words[] = {wire_word(WIRE_STAMP, stamp_now(p->session)),
                              wire_word(WIRE_FREE, address)};
    send(p, words, 2);
}

static void pass(struct fixture *f)
{
    bool was_busy;
    drain_find_dead(&f->on.drain);
    f->clock_ms++;
    atomic_store(&f->on.session.header->clock_ms, f->clock_ms);
    for (uint64_t i = 0; i < 2; i++) { // it was as late a while ago, too
        drain_note_time(&f->on.drain, f->clock_ms, (2 * f->clock_ms + i) * 1000000);
    }
    assert_int_equal(drain_pass(&f->on.drain, f->clock_ms, false, &was_busy), ERR_OK);
}

static uint64_t now_s(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec;
}

enum {
    THREADS = 8,
};
#define THREAD_PAIRS 30000ull // a tenth of the blocks is kept

struct worker {
    struct fixture *fixture;
    uint32_t process;
    uint64_t base;
};

// Allocate and free on its own; each tenth block stays live.
static void *work(void *argument)
{
    const struct worker *worker = argument;
    struct lane_producer p;
    open_lane(worker->fixture, worker->process, &p);
    for (uint64_t i = 0; i < THREAD_PAIRS; i++) {
        uint64_t address = worker->base + i * 16;
        (void)lane_producer_tick(&p);
        send_allocation(&p, address, i % 100);
        if (i % 10 != 0) {
            const uint64_t words[] = {wire_word(WIRE_STAMP, stamp_now(p.session)),
                                      wire_word(WIRE_FREE_TEMPORARY, address)};
            send(&p, words, 2);
        }
    }
    lane_producer_close(&p);
    return NULL;
}

static void everything_that_threads_write_is_booked(void **state)
{
    (void)state;
    static struct fixture f;
    open_fixture(&f);
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    uint32_t process = join(&f, (uint32_t)getpid(), 0);
    for (uint64_t i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.fixture = &f, .process = process, .base = (i + 1) << 32};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    const uint64_t deadline = now_s() + DEADLINE_S;
    while (f.on.aggregator.totals.sums.allocations < THREADS * THREAD_PAIRS ||
           f.on.drain.active_count > 0) {
        pass(&f);
        assert_true(now_s() < deadline);
    }
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(f.on.aggregator.totals.sums.allocations, THREADS * THREAD_PAIRS);
    assert_int_equal(f.on.aggregator.totals.sums.frees, THREADS * THREAD_PAIRS / 10 * 9);
    assert_int_equal(f.on.aggregator.totals.sums.temporary, THREADS * THREAD_PAIRS / 10 * 9);
    assert_int_equal(f.on.aggregator.unknown_frees, 0);
    assert_int_equal(f.on.drain.corrupt_lanes, 0);
    assert_int_equal(f.on.aggregator.threads.threads.len, THREADS);
    assert_int_equal(drain_events(&f.on.drain), THREADS * (THREAD_PAIRS + THREAD_PAIRS / 10 * 9));
    assert_int_equal(atomic_load(&f.on.session.header->lane_bitmap[0]), 0);
    const struct lane_header *lane = session_lane(f.on.session.memory, 0);
    assert_int_equal(atomic_load(&lane->write_pos), 0); // the memory was returned
    close_fixture(&f);
}

// Run passes until the answer to query `number` has come. Return how many passes that took.
static int pass_until_answered(struct fixture *f, struct lane_header *lane, uint32_t number)
{
    int passes = 0;
    while (atomic_load(&lane->answer.answered) != number) {
        assert_in_range(++passes, 1, 10);
        pass(f);
    }
    return passes;
}

static void assert_answer(const struct lane_header *lane, uint64_t allocations, uint64_t bytes)
{
    assert_int_equal(atomic_load(&lane->answer.values[ANSWER_ALLOCATIONS]), allocations);
    assert_int_equal(atomic_load(&lane->answer.values[ANSWER_ALLOCATED_BYTES]), bytes);
}

static void queries_are_answered_when_all_before_them_is_counted(void **state)
{
    (void)state;
    struct fixture f;
    struct lane_producer asks;
    struct lane_producer other;
    open_fixture(&f);
    const uint32_t process = join(&f, (uint32_t)getpid(), 0);
    open_lane(&f, process, &asks);
    const uint64_t of_process = wire_word(WIRE_QUERY, 1 | (uint64_t)STATS_QUERY_PROCESS << 32);
    send_allocation(&asks, 0x1000, 5);
    send(&asks, &of_process, 1);
    assert_int_equal(pass_until_answered(&f, asks.lane, 1), 2); // alone: the next pass is enough
    assert_answer(asks.lane, 1, 5);

    open_lane(&f, process, &other);
    pass(&f);
    assert_true(lane_producer_tick(&other) && lane_producer_tick(&asks));
    send_allocation(&other, 0x2000, 10);
    const uint64_t again = wire_word(WIRE_QUERY, 2 | (uint64_t)STATS_QUERY_PROCESS << 32);
    send(&asks, &again, 1);
    (void)pass_until_answered(&f, asks.lane, 2);
    assert_answer(asks.lane, 2, 15);
    const uint64_t of_thread = wire_word(WIRE_QUERY, 3 | (uint64_t)STATS_QUERY_THREAD << 32);
    send(&asks, &of_thread, 1);
    (void)pass_until_answered(&f, asks.lane, 3);
    assert_answer(asks.lane, 1, 5);
    close_fixture(&f);
}

static void blocks_freed_by_another_thread_are_paired(void **state)
{
    (void)state;
    static struct fixture f;
    open_fixture(&f);
    uint32_t process = join(&f, (uint32_t)getpid(), 0);
    struct lane_producer lanes[2];
    open_lane(&f, process, &lanes[0]);
    open_lane(&f, process, &lanes[1]);
    for (uint64_t round = 0; round < 500; round++) {
        struct lane_producer *maker = &lanes[round % 2];
        struct lane_producer *user = &lanes[(round + 1) % 2];
        for (uint64_t i = 1; i <= 20; i++) {
            send_allocation(maker, 0x10000 + i * 32, 10);
            send_free(user, 0x10000 + i * 32);
        }
        pass(&f);
        (void)lane_producer_tick(&lanes[0]);
        (void)lane_producer_tick(&lanes[1]);
    }
    pass(&f);
    assert_int_equal(f.on.aggregator.totals.sums.allocations, 10000);
    assert_int_equal(f.on.aggregator.totals.sums.frees, 10000);
    assert_int_equal(f.on.aggregator.totals.sums.live_bytes, 0);
    assert_int_equal(f.on.aggregator.unknown_frees, 0);
    assert_int_equal(f.on.aggregator.waiting_count, 0);
    close_fixture(&f);
}

static void a_dead_process_is_read_to_its_last_record(void **state)
{
    (void)state;
    static struct fixture f;
    open_fixture(&f);
    const pid_t child = fork();
    if (child == 0) {
        struct lane_producer p;
        open_lane(&f, join(&f, (uint32_t)getpid(), PROCESS_FORKED), &p);
        for (uint64_t i = 1; i <= 100; i++) {
            send_allocation(&p, i * 64, i);
        }
        _exit(0); // without closing its lane
    }
    const uint64_t deadline = now_s() + DEADLINE_S;
    bool is_reaped = false;
    while (!is_reaped || f.on.drain.process_count > 0 || f.on.aggregator.processes.len == 0) {
        pass(&f);
        is_reaped = is_reaped || waitpid(child, NULL, WNOHANG) == child;
        assert_true(now_s() < deadline);
    }
    assert_int_equal(f.on.aggregator.totals.sums.allocations, 100);
    assert_int_equal(row_table_count(&f.on.aggregator.totals.rows), ERR_OK);
    assert_int_equal(f.on.aggregator.totals.rows.rows.items[0].allocated_bytes, 5050);
    assert_true(f.on.aggregator.processes.items[0]->is_ended);
    assert_int_equal(f.on.aggregator.totals.sums.live_bytes, 0);
    assert_int_equal(f.on.drain.active_count, 0);
    const struct process_slot *slot = session_process(f.on.session.memory, 0);
    assert_int_equal(atomic_load(&slot->state), PROCESS_FREE);
    close_fixture(&f);
}

// The slot of the process was counted and not filled in at the scan. Then the process did all its
// work, and the process that waited for it ended.
static void a_process_that_was_overlooked_lived_beside_the_dead(void **state)
{
    (void)state;
    static struct fixture f;
    open_fixture(&f);
    const pid_t parent = test_session_sleeping_child();
    struct lane_producer outer;
    struct lane_producer inner;
    const uint32_t slot = join(&f, (uint32_t)parent, 0);
    open_lane(&f, slot, &outer);
    send_allocation(&outer, 0x1000, 200);
    pass(&f);
    const uint32_t late = join(&f, (uint32_t)getpid(), PROCESS_FORKED);
    atomic_store(&session_process(f.on.mapping.header, late)->state, PROCESS_CLAIMED);
    pass(&f);
    atomic_store(&session_process(f.on.mapping.header, late)->state, PROCESS_ACTIVE);
    open_lane(&f, late, &inner);
    send_allocation(&inner, 0x1000, 100);
    send_free(&inner, 0x1000);
    atomic_store(&f.on.session.header->clock_ms, ++f.clock_ms);
    struct process_slot *shared = session_process(f.on.mapping.header, slot);
    atomic_store(&shared->exit_stamp, stamp_now(f.on.mapping.header));
    atomic_store(&shared->exit_ms, f.clock_ms);
    assert_int_equal(kill(parent, SIGKILL), 0);
    const uint64_t deadline = now_s() + DEADLINE_S;
    for (bool is_reaped = false; !is_reaped || f.on.drain.process_count > 1;) {
        assert_true(now_s() < deadline);
        is_reaped = is_reaped || waitpid(parent, NULL, WNOHANG) == parent;
        if (is_reaped) {
            pass(&f);
        }
    }
    assert_int_equal(f.on.aggregator.totals.sums.allocations, 2);
    assert_int_equal(f.on.aggregator.totals.peak_bytes, 300);
    close_fixture(&f);
}

// The writer of a checkpoint is a copy of the recorder, with all its open files.
static void a_slot_s_next_process_is_not_taken_for_the_one_before(void **state)
{
    (void)state;
    static struct fixture f;
    open_fixture(&f);
    const pid_t first = test_session_sleeping_child();
    struct lane_producer p;
    const uint32_t slot = join(&f, (uint32_t)first, 0);
    open_lane(&f, slot, &p);
    pass(&f);
    const pid_t writer = test_session_sleeping_child();
    assert_int_equal(kill(first, SIGKILL), 0);
    assert_int_equal(waitpid(first, NULL, 0), first);
    const uint64_t deadline = now_s() + DEADLINE_S;
    while (f.on.drain.process_count > 0) {
        assert_true(now_s() < deadline);
        pass(&f);
    }
    assert_int_equal(join(&f, (uint32_t)getpid(), 0), slot);
    open_lane(&f, slot, &p);
    for (int i = 0; i < 20; i++) {
        pass(&f);
    }
    assert_int_equal(f.on.drain.process_count, 1);
    assert_int_equal(f.on.drain.active_count, 1);
    assert_int_equal(kill(writer, SIGKILL), 0);
    assert_int_equal(waitpid(writer, NULL, 0), writer);
    close_fixture(&f);
}

// Its block is freed when it sleeps. This thread runs, and may be about to free one for ever.
static void a_thread_that_sleeps_has_finished_its_latest_free(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f);
    const pid_t child = test_session_sleeping_child();
    struct lane_producer running;
    struct lane_producer asleep;
    open_lane(&f, join(&f, (uint32_t)getpid(), 0), &running);
    open_lane(&f, join(&f, (uint32_t)child, 0), &asleep);
    asleep.lane->thread_id = (uint32_t)child;
    send_allocation(&running, 0x1000, 100);
    send_allocation(&asleep, 0x2000, 700);
    send_free(&running, 0x1000);
    send_free(&asleep, 0x2000);
    pass(&f);
    assert_int_equal(f.on.aggregator.bound.flight_bytes, 800);
    const uint64_t deadline = now_s() + DEADLINE_S;
    while (f.on.aggregator.bound.flight_bytes != 100) { // the child may not sleep yet
        assert_true(now_s() < deadline);
        f.clock_ms += 1000;
        pass(&f);
        assert_in_range(f.on.aggregator.bound.flight_bytes, 100, 800);
    }
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    close_fixture(&f);
}

// The live bytes and the error of the peak are known for each order of these: a child makes a block
// and exits, or is killed; its parent makes one, all in one tick or in two, before the recorder's
// pass or between its passes. Only a process that would have noted its exit counts as killed.
static void the_peak_is_bounded_when_a_process_ends(void **state)
{
    (void)state;
    enum {
        ORDERS = 16
    };
    for (unsigned order = 0; order < ORDERS; order++) {
        const bool has_noted_exit = (order & 1) != 0;
        const bool is_later = (order & 2) != 0;
        const bool is_looked_at = (order & 4) != 0;
        const bool notes_exit = (order & 8) != 0; // if it is not killed
        static struct fixture f;
        open_fixture(&f);
        const pid_t child = test_session_sleeping_child();
        struct lane_producer outer;
        struct lane_producer inner;
        open_lane(&f, join(&f, (uint32_t)getpid(), 0), &outer);
        send_allocation(&outer, 0x1000, 1000);
        const uint32_t slot =
            join(&f, (uint32_t)child, PROCESS_FORKED | (notes_exit ? PROCESS_NOTES_EXIT : 0));
        session_process(f.on.mapping.header, slot)->pid_namespace = f.on.session.pid_namespace;
        open_lane(&f, slot, &inner);
        inner.lane->thread_id = (uint32_t)child; // so that the recorder finds the thread
        send_allocation(&inner, 0x1000, 500);
        if (is_looked_at) {
            pass(&f);
        }
        if (has_noted_exit) {
            struct process_slot *shared = session_process(f.on.mapping.header, slot);
            atomic_store(&shared->exit_stamp, stamp_now(f.on.mapping.header));
            atomic_store(&shared->exit_ms, f.clock_ms);
        }
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, NULL, 0), child);
        if (is_later) {
            atomic_store(&f.on.session.header->clock_ms, ++f.clock_ms);
        }
        assert_true(lane_producer_tick(&outer));
        send_allocation(&outer, 0x2000, 500);
        const uint64_t deadline = now_s() + DEADLINE_S;
        while (f.on.drain.process_count > 1 || f.on.aggregator.totals.sums.allocations < 3) {
            assert_true(now_s() < deadline);
            pass(&f);
        }
        const struct aggregator *aggregator = &f.on.aggregator;
        const uint64_t above = peak_bound_above(&aggregator->bound, aggregator->totals.peak_bytes);
        const uint64_t below = peak_bound_below(&aggregator->bound, aggregator->totals.peak_bytes);
        assert_int_equal(aggregator->totals.sums.live_bytes, 1500);
        assert_in_range(1500, aggregator->totals.peak_bytes - below,
                        aggregator->totals.peak_bytes + above);
        assert_int_equal(below, 0);
        assert_true(above <= 500); // the parent's block may have been there earlier
        const struct rec_process *ended = &aggregator->processes.items[1]->record;
        const bool is_killed = notes_exit && !has_noted_exit;
        assert_int_equal((ended->flags & REC_PROCESS_KILLED) != 0, is_killed);
        assert_int_equal(ended->killed_threads, is_killed ? 1 : 0);
        close_fixture(&f);
    }
}

// A process frees its block and exits. Another one begins then and makes such a block, before the
// recorder's pass: they did not exist at the same time.
static void what_a_process_freed_ends_with_it(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f);
    const pid_t child = test_session_sleeping_child();
    struct lane_producer ended;
    struct lane_producer next;
    open_lane(&f, join(&f, (uint32_t)getpid(), 0), &next);
    send_allocation(&next, 0x1000, 1);
    const uint32_t slot = join(&f, (uint32_t)child, PROCESS_FORKED);
    session_process(f.on.mapping.header, slot)->pid_namespace = f.on.session.pid_namespace;
    open_lane(&f, slot, &ended);
    send_allocation(&ended, 0x1000, 5000);
    send_free(&ended, 0x1000);
    struct process_slot *shared = session_process(f.on.mapping.header, slot);
    atomic_store(&shared->exit_stamp, stamp_now(f.on.mapping.header));
    atomic_store(&shared->exit_ms, f.clock_ms);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    send_allocation(&next, 0x2000, 1);
    send_allocation(&next, 0x3000, 5000);
    const uint64_t deadline = now_s() + DEADLINE_S;
    while (f.on.drain.process_count > 1 || f.on.aggregator.totals.sums.allocations < 4) {
        assert_true(now_s() < deadline);
        pass(&f);
    }
    assert_int_equal(f.on.aggregator.totals.peak_bytes, 5002);
    assert_in_range(peak_bound_above(&f.on.aggregator.bound, 5002), 0, 100);
    close_fixture(&f);
}

static void a_new_slot_of_the_same_pid_is_the_next_image(void **state)
{
    (void)state;
    static struct fixture f;
    open_fixture(&f);
    struct lane_producer before;
    struct lane_producer after;
    open_lane(&f, join(&f, (uint32_t)getpid(), 0), &before);
    send_allocation(&before, 0x1000, 5);
    pass(&f);
    send_allocation(&before, 0x2000, 6); // not read yet when the next image joins
    open_lane(&f, join(&f, (uint32_t)getpid(), 0), &after);
    send_free(&after, 0x1000); // an address of the old image is meaningless in the new one
    pass(&f);
    pass(&f);
    assert_int_equal(f.on.aggregator.processes.len, 2);
    assert_true((f.on.aggregator.processes.items[0]->record.flags & REC_PROCESS_EXECED) != 0);
    assert_int_equal(f.on.aggregator.processes.items[1]->record.epoch, 1);
    assert_int_equal(f.on.aggregator.totals.sums.allocations, 2);
    assert_int_equal(f.on.aggregator.totals.sums.frees, 0);
    assert_int_equal(f.on.drain.process_count, 1);
    assert_int_equal(f.on.drain.active_count, 1);
    close_fixture(&f);
}

static void scribble_positions(struct lane_producer *p)
{
    atomic_store(&p->lane->write_pos, UINT64_MAX - 7);
}

static void scribble_odd_position(struct lane_producer *p)
{
    atomic_fetch_add(&p->lane->write_pos, 4);
}

static void scribble_ring_size(struct lane_producer *p)
{
    send_free(p, 0x1000);
    atomic_store(&p->lane->ring_bytes, 3u << 20);
}

static void scribble_tag(struct lane_producer *p)
{
    const uint64_t word = 0xee;
    send(p, &word, 1);
}

static void use_undefined_slot(struct lane_producer *p)
{
    const uint64_t words[] = {wire_word(WIRE_ALLOC, 0x1000), wire_slot_size(SLOT + 1, 1)};
    send(p, words, 2);
}

static void use_undefined_module(struct lane_producer *p)
{
    const uint64_t words[] = {wire_word(WIRE_STACK, 1), 0, (uint64_t)5 << WIRE_OFFSET_BITS};
    send(p, words, 3);
}

static void use_unknown_base(struct lane_producer *p)
{
    const uint64_t words[] = {wire_word(WIRE_STACK, 1), 0x1234, 0x1000};
    send(p, words, 3);
}

static void use_huge_slot(struct lane_producer *p)
{
    const uint64_t words[] = {
        wire_word(WIRE_STACK, 1 | WIRE_STACK_HAS_SLOT << 8 | (uint64_t)0xffffff << 16), 0, 0x1000};
    send(p, words, 3);
}

static void free_address_zero(struct lane_producer *p)
{
    send_free(p, 0);
}

static void cut_record(struct lane_producer *p)
{
    const uint64_t word = wire_word(WIRE_ALLOC, 0x1000); // and nothing behind it
    send(p, &word, 1);
}

static void long_pad(struct lane_producer *p)
{
    const uint64_t word = wire_word(WIRE_PAD, 1u << 20);
    send(p, &word, 1);
}

static void a_lane_that_breaks_the_rules_is_closed_and_no_other(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        void (*scribble)(struct lane_producer *p);
    } cases[] = {
        {"positions", scribble_positions},
        {"a position that is no multiple of 8", scribble_odd_position},
        {"ring size", scribble_ring_size},
        {"tag", scribble_tag},
        {"a stack slot that was never defined", use_undefined_slot},
        {"a module slot that was never defined", use_undefined_module},
        {"a base that was never introduced", use_unknown_base},
        {"a slot number beyond all dictionaries", use_huge_slot},
        {"address 0", free_address_zero},
        {"a record that is cut", cut_record},
        {"a pad longer than the ring", long_pad},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        print_message("%s\n", cases[i].name);
        static struct fixture f;
        open_fixture(&f);
        uint32_t process = join(&f, (uint32_t)getpid(), 0);
        struct lane_producer good;
        struct lane_producer bad;
        open_lane(&f, process, &good);
        open_lane(&f, process, &bad);
        send_allocation(&good, 0x5000, 1);
        cases[i].scribble(&bad);
        pass(&f);
        assert_int_equal(f.on.drain.corrupt_lanes, 1);
        send_allocation(&good, 0x6000, 1);
        pass(&f);
        assert_int_equal(f.on.drain.corrupt_lanes, 1);
        assert_int_equal(f.on.aggregator.totals.sums.allocations, 2);
        // Its producer must not wait for room without end.
        assert_int_equal(atomic_load(&bad.lane->read_pos), atomic_load(&bad.lane->write_pos));
        close_fixture(&f);
    }
}

static void slots_that_lie_harm_nobody(void **state)
{
    (void)state;
    static struct fixture f;
    open_fixture(&f);
    static const uint32_t pids[] = {0, UINT32_MAX, 0x7fffffff, 0x80000000};
    for (size_t i = 0; i < sizeof(pids) / sizeof(pids[0]); i++) {
        (void)join(&f, pids[i], UINT32_MAX);
    }
    struct lane_producer p;
    open_lane(&f, SESSION_MAX_PROCESSES + 5, &p); // a lane of no process
    pass(&f);
    for (int i = 0; i < 20; i++) {
        pass(&f);
    }
    assert_int_equal(f.on.drain.process_count, 0);
    assert_int_equal(f.on.drain.active_count, 0);
    close_fixture(&f);
}

// Make a stream of valid records; now and then one word is wrong.
static size_t random_stream(uint64_t *words, size_t max, uint64_t *random, unsigned damage_percent)
{
    size_t count = 0;
    for (size_t record = 0; count + 12 < max; record++) {
        const uint64_t r = record == 0 ? (uint64_t)6 << 32 : next_random(random); // a module first
        const size_t begin = count;
        const uint64_t address = 0x1000 + r % 64 * 8;
        switch (r >> 32 & 7) {
        case 0:
        case 1:
            words[count++] = wire_word(WIRE_ALLOC, address);
            words[count++] = wire_slot_size(SLOT, r >> 40);
            break;
        case 2:
        case 3:
            words[count++] = wire_word(WIRE_FREE, address);
            break;
        case 4:
            words[count++] = wire_word(WIRE_REALLOC, address);
            words[count++] = wire_slot_size(SLOT, r >> 40);
            words[count++] = 0x1000 + (r >> 8) % 64 * 8;
            break;
        case 5:
            words[count++] = wire_word(WIRE_STACK, 2 | WIRE_STACK_HAS_SLOT << 8 | SLOT << 16);
            words[count++] = 0;
            words[count++] = (uint64_t)1 << WIRE_OFFSET_BITS | r % 512;
            words[count++] = r % 512;
            break;
        case 6:
            words[count++] = wire_word(WIRE_MODULE, 1 | 4 << 16 | 6 << 24);
            words[count++] = 0x10000;
            words[count++] = 0x10000;
            words[count++] = 0x20000;
            words[count++] = r;
            words[count++] = 0x656c75646f6dULL;
            break;
        default:
            words[count++] = wire_word(WIRE_TEXT, 3 | (r & 1) << 8 | 5 << 16);
            words[count++] = r;
            break;
        }
        if (next_random(random) % 100 < damage_percent) {
            words[begin + next_random(random) % (count - begin)] ^= (uint64_t)1
                                                                    << (next_random(random) % 64);
        }
    }
    return count;
}

static void no_garbage_in_a_lane_gets_the_recorder_down(void **state)
{
    (void)state;
    enum {
        ROUNDS = 400,
        WORDS = 900 // less than a ring, so that nothing wraps
    };
    static uint64_t words[WORDS];
    static struct fixture f;
    uint64_t random = 4711;
    uint64_t corrupt = 0;
    for (int round = 0; round < ROUNDS; round++) {
        open_fixture(&f);
        struct lane_producer p;
        open_lane(&f, join(&f, (uint32_t)getpid(), 0), &p);
        size_t count = WORDS;
        if (round % 2 == 0) {
            for (size_t i = 0; i < WORDS; i++) {
                words[i] = next_random(&random);
                words[i] = round % 4 == 0 ? words[i] : (words[i] & ~(uint64_t)0xff) | words[i] % 11;
            }
        } else {
            count = random_stream(words, WORDS, &random, round % 3);
        }
        if (round % 8 == 0) {
            send(&p, words, count / 2); // read in two parts
            pass(&f);
            send(&p, words + count / 2, count - count / 2);
        } else {
            send(&p, words, count);
        }
        pass(&f);
        pass(&f);
        corrupt += f.on.drain.corrupt_lanes;
        assert_true(round % 2 == 0 || round % 3 != 0 || f.on.drain.corrupt_lanes == 0);
        assert_true(live_map_check(&f.on.aggregator.processes.items[0]->live));
        assert_true(f.on.aggregator.totals.sums.frees <= f.on.aggregator.totals.sums.allocations);
        close_fixture(&f);
    }
    assert_in_range(corrupt, ROUNDS / 3, ROUNDS);
}

// Take another budget of a thread for what it may hold.
static void take_budget(const struct lane_producer *p, uint64_t bytes)
{
    struct nursery *n = &p->lane->nursery;
    atomic_store(&n->budget_bytes, bytes);
    atomic_store(&n->budget_count, atomic_load(&n->budget_count) + 1);
}

// While a thread is in the middle of a realloc, no later event is counted, and the budgets of that
// time count until then.
static void budgets_count_until_their_time_is_booked(void **state)
{
    (void)state;
    static struct fixture f;
    struct lane_producer holding;
    struct lane_producer moving;
    open_fixture(&f);
    const uint32_t slot = join(&f, (uint32_t)getpid(), 0);
    open_lane(&f, slot, &holding);
    open_lane(&f, slot, &moving);
    f.on.drain.hold_bytes_most = 1000;
    take_budget(&holding, 100);
    pass(&f);
    assert_int_equal(f.on.aggregator.bound.unseen_bytes, 100);
    atomic_store(&moving.lane->pending_stamps[LANE_PENDING_REALLOC],
                 stamp_now(f.on.session.header));
    take_budget(&holding, 0);
    for (uint32_t i = 0; i < 3; i++) {
        pass(&f);
        assert_int_equal(f.on.aggregator.bound.unseen_bytes, 100);
    }
    atomic_store(&moving.lane->pending_stamps[LANE_PENDING_REALLOC], 0);
    pass(&f);
    assert_int_equal(f.on.aggregator.bound.unseen_bytes, 100);
    pass(&f);
    assert_int_equal(f.on.aggregator.bound.unseen_bytes, 0);
    close_fixture(&f);
}

// A pass begins with events that precede the moment at which the previous one read the budgets: the
// budgets before that moment count, also those of threads that have ended since.
static void budgets_count_for_the_events_before_they_were_read(void **state)
{
    (void)state;
    for (int ends = 0; ends < 2; ends++) {
        static struct fixture f;
        struct lane_producer holding;
        struct lane_producer other;
        open_fixture(&f);
        const uint32_t slot = join(&f, (uint32_t)getpid(), 0);
        open_lane(&f, slot, &holding);
        open_lane(&f, slot, &other);
        f.on.drain.hold_bytes_most = 1000;
        take_budget(&holding, 100);
        pass(&f);
        if (ends != 0) {
            lane_producer_close(&holding);
        } else {
            take_budget(&holding, 0);
        }
        static const uint64_t expected[] = {100, 100, 0};
        for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
            pass(&f);
            assert_int_equal(f.on.aggregator.bound.unseen_bytes, expected[i]);
        }
        assert_int_equal(f.on.drain.active_count, ends != 0 ? 1 : 2);
        close_fixture(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_that_sleeps_has_finished_its_latest_free),
        cmocka_unit_test(everything_that_threads_write_is_booked),
        cmocka_unit_test(queries_are_answered_when_all_before_them_is_counted),
        cmocka_unit_test(blocks_freed_by_another_thread_are_paired),
        cmocka_unit_test(budgets_count_until_their_time_is_booked),
        cmocka_unit_test(budgets_count_for_the_events_before_they_were_read),
        cmocka_unit_test(a_dead_process_is_read_to_its_last_record),
        cmocka_unit_test(a_process_that_was_overlooked_lived_beside_the_dead),
        cmocka_unit_test(a_slot_s_next_process_is_not_taken_for_the_one_before),
        cmocka_unit_test(the_peak_is_bounded_when_a_process_ends),
        cmocka_unit_test(what_a_process_freed_ends_with_it),
        cmocka_unit_test(a_new_slot_of_the_same_pid_is_the_next_image),
        cmocka_unit_test(a_lane_that_breaks_the_rules_is_closed_and_no_other),
        cmocka_unit_test(slots_that_lie_harm_nobody),
        cmocka_unit_test(no_garbage_in_a_lane_gets_the_recorder_down),
    };
    return cmocka_run_group_tests(tests, open_files_note, open_files_expect);
}
