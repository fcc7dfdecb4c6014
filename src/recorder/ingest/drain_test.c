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

#include "base/clock.h"
#include "base/test_support/open_files.h"
#include "base/test_support/random_numbers.h"
#include "recorder/ingest/test_drain.h"
#include "target/preload/process/stats_query.h"
#include "target/producer/lane_producer.h"

enum {
    THREADS = 8,
};
#define THREAD_PAIRS 30000ull // a tenth of the blocks is kept

struct worker {
    struct fixture *fixture;
    pthread_barrier_t *opened;
    uint32_t process;
};

// Allocate and free on its own; each tenth block stays live. All open their lanes first: a thread
// that began late would get the lane of one that has ended, and with it that one's row (row_of).
static void *work(void *argument)
{
    const struct worker *worker = argument;
    struct lane_producer p;
    open_lane(worker->fixture, worker->process, &p);
    (void)pthread_barrier_wait(worker->opened);
    for (uint64_t i = 0; i < THREAD_PAIRS; i++) {
        (void)lane_producer_tick(&p);
        send_allocation(&p, i % 100);
        if (i % 10 != 0) {
            test_send_event(&p, TEST_TEMPORARY_FREE, row_of(&p), i % 100);
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
    static struct test_clock clock;
    begin_test_clock(&clock, &f);
    uint32_t process = join(&f, (uint32_t)getpid(), 0);
    pthread_barrier_t opened;
    assert_int_equal(pthread_barrier_init(&opened, NULL, THREADS), 0);
    for (uint64_t i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.fixture = &f, .opened = &opened, .process = process};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    const uint64_t deadline = now_s() + DEADLINE_S;
    while (f.on.aggregator.totals.sums.allocations < THREADS * THREAD_PAIRS ||
           f.on.drain.active_count > 0) {
        pass_beside_clock(&f);
        assert_int_equal(atomic_load(&f.on.session.header->counters[NOTE_lane_timeout]), 0);
        assert_true(now_s() < deadline);
    }
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    end_test_clock(&clock);
    assert_int_equal(pthread_barrier_destroy(&opened), 0);
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

// Lanes that are claimed and not yet filled in do not hide one that is.
static void the_last_lane_is_read(void **state)
{
    (void)state;
    struct fixture f;
    struct lane_producer p;
    open_fixture(&f);
    const uint32_t process = join(&f, (uint32_t)getpid(), 0);
    for (size_t word = 0; word < SESSION_MAX_LANES / 64; word++) {
        const bool is_last = word == SESSION_MAX_LANES / 64 - 1;
        atomic_store(&f.on.session.header->lane_bitmap[word], UINT64_MAX >> is_last);
    }
    open_lane(&f, process, &p);
    assert_ptr_equal(p.lane, session_lane(f.on.mapping.header, SESSION_MAX_LANES - 1));
    send_allocation(&p, 5);
    for (int passes = 0; passes < 3; passes++) {
        pass(&f);
    }
    assert_int_equal(f.on.aggregator.totals.sums.allocations, 1);
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
    send_allocation(&asks, 5);
    test_send(&asks, &of_process, 1);
    assert_int_equal(pass_until_answered(&f, asks.lane, 1), 2); // alone: the next pass is enough
    assert_answer(asks.lane, 1, 5);

    open_lane(&f, process, &other);
    pass(&f);
    assert_true(lane_producer_tick(&other) && lane_producer_tick(&asks));
    send_allocation(&other, 10);
    const uint64_t again = wire_word(WIRE_QUERY, 2 | (uint64_t)STATS_QUERY_PROCESS << 32);
    test_send(&asks, &again, 1);
    (void)pass_until_answered(&f, asks.lane, 2);
    assert_answer(asks.lane, 2, 15);
    const uint64_t of_thread = wire_word(WIRE_QUERY, 3 | (uint64_t)STATS_QUERY_THREAD << 32);
    test_send(&asks, &of_thread, 1);
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
            send_allocation(maker, i);
            test_send_event(user, TEST_FREE, row_of(maker), i);
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
    assert_int_equal(f.on.aggregator.processes.items[0]->debts.len, 0);
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
    send_free(p, 1);
    atomic_store(&p->lane->ring_bytes, 3u << 20);
}

static void scribble_tag(struct lane_producer *p)
{
    const uint64_t word = 0xee;
    test_send(p, &word, 1);
}

static void use_undefined_slot(struct lane_producer *p)
{
    test_send_row(p, SLOT + 1, 77);
}

static void use_undefined_module(struct lane_producer *p)
{
    const uint64_t words[] = {wire_word(WIRE_STACK, 1), 0, (uint64_t)5 << WIRE_OFFSET_BITS};
    test_send(p, words, 3);
}

static void use_unknown_base(struct lane_producer *p)
{
    const uint64_t words[] = {wire_word(WIRE_STACK, 1), 0x1234, 0x1000};
    test_send(p, words, 3);
}

static void use_huge_slot(struct lane_producer *p)
{
    const uint64_t words[] = {
        wire_word(WIRE_STACK, 1 | WIRE_STACK_HAS_SLOT << 8 | (uint64_t)0xffffff << 16), 0, 0x1000};
    test_send(p, words, 3);
}

static void define_row_twice(struct lane_producer *p)
{
    test_send_row(p, SLOT, row_of(p));
}

static void send_empty_book(struct lane_producer *p)
{
    const uint64_t word = wire_word(WIRE_BOOK, row_of(p));
    test_send(p, &word, 1);
}

static void cut_record(struct lane_producer *p)
{
    const uint64_t word = wire_word(WIRE_GREW, 0x1000); // and nothing behind it
    test_send(p, &word, 1);
}

static void long_pad(struct lane_producer *p)
{
    const uint64_t word = wire_word(WIRE_PAD, 1u << 20);
    test_send(p, &word, 1);
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
        {"a row that is defined twice", define_row_twice},
        {"a book without events", send_empty_book},
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
        send_allocation(&good, 1);
        cases[i].scribble(&bad);
        pass(&f);
        assert_int_equal(f.on.drain.corrupt_lanes, 1);
        send_allocation(&good, 1);
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
        switch (r >> 32 & 7) {
        case 0:
        case 1:
            count += test_book_of(TEST_ALLOCATION, 1, r >> 40, words + count);
            break;
        case 2:
        case 3:
            count += test_book_of(TEST_FREE, 1, r >> 40, words + count);
            break;
        case 4:
            words[count++] = wire_word(WIRE_GREW, r >> 40);
            words[count++] = wire_slot_size(SLOT, WIRE_GREW_MIN + (r >> 40));
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
            test_send(&p, words, count / 2); // read in two parts
            pass(&f);
            test_send(&p, words + count / 2, count - count / 2);
        } else {
            test_send(&p, words, count);
        }
        pass(&f);
        pass(&f);
        corrupt += f.on.drain.corrupt_lanes;
        assert_true(round % 2 == 0 || round % 3 != 0 || f.on.drain.corrupt_lanes == 0);
        assert_true(f.on.aggregator.totals.sums.frees <= f.on.aggregator.totals.sums.allocations);
        close_fixture(&f);
    }
    assert_in_range(corrupt, ROUNDS / 3, ROUNDS);
}

// Threads wait by this number (lane_backlog.h), so it must be right, also after the program
// overwrote it.
static void the_unread_lanes_of_ended_threads_are_counted(void **state)
{
    (void)state;
    struct fixture f;
    struct lane_producer lanes[4];
    open_fixture(&f);
    struct session_header *header = f.on.session.header;
    const uint32_t process = join(&f, (uint32_t)getpid(), 0);
    for (size_t i = 0; i < 4; i++) {
        open_lane(&f, process, &lanes[i]);
        send_allocation(&lanes[i], 16);
    }
    pass(&f);
    assert_int_equal(session_unread_lanes(header), 0);
    lane_producer_close(&lanes[0]);
    lane_producer_close(&lanes[1]);
    assert_int_equal(session_unread_lanes(header), 2);
    pass(&f);
    pass(&f);
    assert_int_equal(f.on.drain.active_count, 2);
    assert_int_equal(session_unread_lanes(header), 0);

    static const uint32_t overwritten[] = {0, 1, 1000, INT32_MAX, UINT32_MAX};
    for (size_t i = 0; i < sizeof(overwritten) / sizeof(overwritten[0]); i++) {
        atomic_store(&header->ended_lanes, overwritten[i]);
        atomic_store(&header->recycled_lanes, 5);
        pass(&f);
        assert_int_equal(session_unread_lanes(header), 0);
        atomic_fetch_add(&header->ended_lanes, 1);
        assert_int_equal(session_unread_lanes(header), 1);
    }
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_unread_lanes_of_ended_threads_are_counted),
        cmocka_unit_test(everything_that_threads_write_is_booked),
        cmocka_unit_test(the_last_lane_is_read),
        cmocka_unit_test(queries_are_answered_when_all_before_them_is_counted),
        cmocka_unit_test(blocks_freed_by_another_thread_are_paired),
        cmocka_unit_test(a_lane_that_breaks_the_rules_is_closed_and_no_other),
        cmocka_unit_test(slots_that_lie_harm_nobody),
        cmocka_unit_test(no_garbage_in_a_lane_gets_the_recorder_down),
    };
    return cmocka_run_group_tests(tests, open_files_note, open_files_expect);
}
