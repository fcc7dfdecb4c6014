// SPDX-License-Identifier: MIT
// drain on sessions that dead programs had overwritten: whatever the contents, the recorder reads
// them once, proceeds with the others, and ends.
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/test_support/open_files.h"
#include "recorder/ingest/test_books.h"
#include "recorder/ingest/test_session.h"

enum {
    SLOT = 7,
    PASSES = 20, // more than any of these needs
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

static uint32_t join_as(struct fixture *f, pid_t pid)
{
    const uint32_t index = test_session_add_process(&f->on);
    struct process_slot *slot = session_process(f->on.mapping.header, index);
    slot->pid = (uint32_t)pid;
    slot->pid_namespace = f->on.session.pid_namespace;
    atomic_fetch_add(&f->on.mapping.header->join_count, 1);
    return index;
}

// Open the lane of a process's main thread, with one stack that has a row.
static void open_lane(struct fixture *f, uint32_t process, struct lane_producer *p, uint32_t row)
{
    test_session_add_lane(&f->on, process, p);
    p->lane->thread_id = session_process(f->on.mapping.header, process)->pid;
    assert_true(lane_producer_tick(p));
    test_session_define_stacks(p, SLOT + 1);
    test_send_row(p, SLOT, row);
}

// An event of the lane's stack, whose row has that number.
static void send_allocation(struct lane_producer *p, uint32_t row)
{
    test_send_event(p, TEST_ALLOCATION, row, 100);
}

static void send_time(struct lane_producer *p, uint64_t tick_ms)
{
    const uint64_t word = wire_word(WIRE_TICK, tick_ms);
    test_send(p, &word, 1);
}

static void pass(struct fixture *f)
{
    bool was_busy;
    drain_find_dead(&f->on.drain);
    f->clock_ms++;
    atomic_store(&f->on.session.header->clock_ms, f->clock_ms);
    drain_note_time(&f->on.drain, f->clock_ms, 2 * f->clock_ms * 1000000);
    drain_note_time(&f->on.drain, f->clock_ms, (2 * f->clock_ms + 1) * 1000000);
    assert_int_equal(drain_pass(&f->on.drain, f->clock_ms, false, &was_busy), ERR_OK);
}

static void kill_and_reap(pid_t child)
{
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

static void assert_ends(struct fixture *f)
{
    for (int i = 0; i < PASSES; i++) {
        pass(f);
    }
    assert_int_equal(f->on.drain.process_count, 0);
    assert_int_equal(f->on.drain.active_count, 0);
}

// The drain finds the lane corrupt in the middle of a pass, while other lanes wait behind it; so
// are the contents of its book.
static void a_corrupt_lane_of_the_dead_is_ended_among_others(void **state)
{
    (void)state;
    enum {
        BAD_AT_MOST = 3
    };
    for (uint32_t bad = 0; bad < BAD_AT_MOST; bad++) {
        static struct fixture f;
        open_fixture(&f);
        const pid_t child = sleeping_child();
        const uint32_t process = join_as(&f, child);
        struct lane_producer lanes[BAD_AT_MOST];
        for (uint32_t i = 0; i < BAD_AT_MOST; i++) {
            open_lane(&f, process, &lanes[i], i + 1);
        }
        pass(&f);
        for (uint32_t i = 0; i < BAD_AT_MOST; i++) {
            const uint64_t empty = wire_word(WIRE_BOOK, i + 1); // breaks the rules
            if (i == bad) {
                test_send(&lanes[i], &empty, 1);
            } else {
                send_allocation(&lanes[i], i + 1);
            }
        }
        lanes[bad].lane->keeps_book = 1;
        lanes[bad].lane->book.has_counted = 1;
        lanes[bad].lane->book.used[0] = 1;
        lane_book_tables(lanes[bad].lane)->counters[0] =
            (struct book_counter){.row = 1, .sizes_used = 1, .sizes = {book_cell_with(0, 8)}};
        kill_and_reap(child);
        assert_ends(&f);
        assert_int_equal(f.on.drain.corrupt_lanes, 1);
        assert_int_equal(f.on.aggregator.totals.sums.allocations, BAD_AT_MOST - 1);
        test_session_close(&f.on);
    }
}

// The log says which rule a lane broke, and shows the record.
static void a_broken_rule_is_said(void **state)
{
    (void)state;
    static const struct {
        uint64_t word;
        const char *text;
    } cases[] = {
        {WIRE_ROW | (uint64_t)SLOT << 8 | (uint64_t)1 << 32, "the row's number is in use; "},
        {WIRE_ROW | (uint64_t)(SLOT + 1) << 8 | (uint64_t)9 << 32, "the slot of the row has no "},
        {WIRE_ROW | (uint64_t)SLOT << 8 | (uint64_t)0xfffff0 << 32, "the row's number is beyond "},
        {WIRE_BOOK | 1 << 8, "no record begins so; "},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        static struct fixture f;
        open_fixture(&f);
        struct lane_producer lane;
        open_lane(&f, join_as(&f, getpid()), &lane, 1);
        test_send(&lane, &cases[i].word, 1);
        pass(&f);
        assert_int_equal(f.on.drain.corrupt_lanes, 1);
        struct strbuf text = {0};
        char words[40];
        (void)snprintf(words, sizeof(words), ": %016" PRIx64, cases[i].word);
        lane_fault_text(&text, &f.on.drain.faults[0].fault);
        assert_non_null(strstr(strbuf_text(&text), cases[i].text));
        assert_non_null(strstr(strbuf_text(&text), words));
        strbuf_release(&text);
        test_session_close(&f.on);
    }
}

// No process is left that could make it true.
static void times_to_come_are_not_waited_for(void **state)
{
    (void)state;
    static const uint64_t times[] = {500, 1000, 1001, 100000, (uint64_t)1 << 55};
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        print_message("%llu ms\n", (unsigned long long)times[i]);
        static struct fixture f;
        open_fixture(&f);
        const pid_t children[] = {sleeping_child(), sleeping_child()};
        struct lane_producer lanes[2];
        for (size_t k = 0; k < 2; k++) {
            open_lane(&f, join_as(&f, children[k]), &lanes[k], 1);
            pass(&f);
            send_time(&lanes[k], times[i]);
            send_allocation(&lanes[k], 1);
            pass(&f); // while the first is alone, even a false time is read at once
            send_time(&lanes[k], 2 * times[i]);
            send_allocation(&lanes[k], 1);
        }
        pass(&f);
        kill_and_reap(children[0]);
        kill_and_reap(children[1]);
        assert_ends(&f);
        assert_int_equal(f.on.aggregator.totals.sums.allocations, 4);
        test_session_close(&f.on);
    }
}

static bool may_map(void *context, pid_t pid)
{
    const struct fixture *f = context;
    return pid_lookup_may_map(pid, f->on.drain.session->memfd);
}

// A pid that was written into a slot belongs to an unrelated live process: its end is not waited
// for.
static void strangers_are_not_waited_for(void **state)
{
    (void)state;
    static struct fixture f;
    open_fixture(&f);
    const pid_t stranger = getppid(); // lives, and has not mapped the session
    struct lane_producer ours;
    struct lane_producer theirs;
    open_lane(&f, join_as(&f, getpid()), &ours, 1);
    open_lane(&f, join_as(&f, stranger), &theirs, 1);
    send_allocation(&theirs, 1);
    pass(&f);
    assert_int_equal(f.on.drain.process_count, 2);
    for (int pass = 0; pass < 2; pass++) {
        drain_find_strangers(&f.on.drain, may_map, &f);
        assert_int_equal(f.on.drain.process_count, 2);
    }
    for (int i = 0; i < PASSES; i++) {
        pass(&f);
    }
    assert_int_equal(f.on.drain.process_count, 1); // this process
    assert_int_equal(f.on.drain.active_count, 1);
    assert_int_equal(f.on.aggregator.totals.sums.allocations, 1);
    test_session_close(&f.on);
}

// Programs' counters are accepted up to what is possible, lane by lane and in all.
static void counters_are_bounded_by_what_is_possible(void **state)
{
    (void)state;
    static struct fixture f;
    open_fixture(&f);
    struct lane_producer lanes[2];
    const uint32_t process = join_as(&f, getpid());
    open_lane(&f, process, &lanes[0], 1);
    open_lane(&f, process, &lanes[1], 2);
    _Atomic uint64_t *counter = &f.on.session.header->counters[NOTE_unfinished_stacks];
    const uint64_t *believed = &f.on.drain.counters[NOTE_unfinished_stacks];
    static const struct {
        uint64_t stands_at;
        uint64_t believed;
    } steps[] = {{5, 5}, {7, 7}, {UINT64_MAX, 7}, {UINT64_MAX - 3, 7},
                 {6, 7}, {8, 9}, {1ull << 40, 9}};
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        atomic_store(counter, steps[i].stands_at);
        pass(&f);
        assert_int_equal(*believed, steps[i].believed);
    }
    assert_int_equal(f.on.drain.corrupt_counters, 4);
    atomic_store(&lanes[0].lane->missed_frees, 12);
    atomic_store(&lanes[0].lane->missed_allocations, 11);
    atomic_store(&lanes[1].lane->unsampled_bytes, 1ull << 60);
    pass(&f);
    assert_int_equal(f.on.aggregator.missed_frees, 12);
    assert_int_equal(f.on.aggregator.missed_allocations, 11);
    assert_int_equal(f.on.aggregator.sampling.unsampled_bytes, 0);
    assert_int_equal(f.on.drain.corrupt_lanes, 1);
    atomic_store(&lanes[0].lane->missed_frees, 3); // it cannot decrease
    pass(&f);
    assert_int_equal(f.on.aggregator.missed_frees, 12);
    assert_int_equal(f.on.drain.corrupt_lanes, 2);
    test_session_close(&f.on);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_broken_rule_is_said),
        cmocka_unit_test(a_corrupt_lane_of_the_dead_is_ended_among_others),
        cmocka_unit_test(counters_are_bounded_by_what_is_possible),
        cmocka_unit_test(strangers_are_not_waited_for),
        cmocka_unit_test(times_to_come_are_not_waited_for),
    };
    return cmocka_run_group_tests(tests, open_files_note, open_files_expect);
}
