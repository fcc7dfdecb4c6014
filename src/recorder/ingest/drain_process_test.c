// SPDX-License-Identifier: MIT
// drain_process: processes that exit, are killed or execute another program, and what they leave in
// the sums.
#include "recorder/ingest/drain_process.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/test_support/open_files.h"
#include "host/os/file.h"
#include "recorder/ingest/test_drain.h"

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
            send_allocation(&p, i);
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
    const pid_t parent = sleeping_child();
    struct lane_producer outer;
    struct lane_producer inner;
    const uint32_t slot = join(&f, (uint32_t)parent, 0);
    open_lane(&f, slot, &outer);
    send_allocation(&outer, 200);
    pass(&f);
    const uint32_t late = join(&f, (uint32_t)getpid(), PROCESS_FORKED);
    atomic_store(&session_process(f.on.mapping.header, late)->state, PROCESS_CLAIMED);
    pass(&f);
    atomic_store(&session_process(f.on.mapping.header, late)->state, PROCESS_ACTIVE);
    open_lane(&f, late, &inner);
    send_allocation(&inner, 100);
    send_free(&inner, 100);
    atomic_store(&f.on.session.header->clock_ms, ++f.clock_ms);
    struct process_slot *shared = session_process(f.on.mapping.header, slot);
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
    close_fixture(&f);
}

// A process that lives while a pass looks for processes that have ended.
static struct {
    struct fixture *f; // NULL: none does
    pid_t pid;
    uint32_t slot;
} g_late;

// Stands for libc's.
int epoll_wait(int epoll, struct epoll_event *events, int count, int timeout_ms)
{
    if (g_late.f != NULL) {
        struct lane_producer p;
        open_lane(g_late.f, g_late.slot, &p);
        send_allocation(&p, 100);
        assert_int_equal(kill(g_late.pid, SIGKILL), 0);
        assert_int_equal(waitpid(g_late.pid, NULL, 0), g_late.pid);
        g_late.f = NULL;
    }
    return (int)syscall(SYS_epoll_pwait, epoll, events, count, timeout_ms, NULL, (size_t)8);
}

// A process joins before a pass, and has its only thread's life while the pass finds the others.
// The next process has its slot.
static void a_life_within_a_pass_is_not_the_next_process_s(void **state)
{
    (void)state;
    static struct fixture f;
    open_fixture(&f);
    g_late.pid = sleeping_child();
    g_late.slot = join(&f, (uint32_t)g_late.pid, PROCESS_FORKED);
    g_late.f = &f;
    pass_now(&f);
    assert_null(g_late.f);
    for (int i = 0; i < 3; i++) {
        pass(&f);
    }
    assert_int_equal(f.on.drain.process_count, 0);
    assert_int_equal(f.on.drain.active_count, 0);
    assert_int_equal(f.on.aggregator.totals.sums.allocations, 1);
    struct lane_producer p;
    assert_int_equal(join(&f, (uint32_t)getpid(), 0), g_late.slot);
    open_lane(&f, g_late.slot, &p);
    send_allocation(&p, 10);
    pass(&f);
    assert_int_equal(f.on.drain.active_count, 1);
    assert_int_equal(f.on.drain.corrupt_lanes, 0);
    assert_int_equal(f.on.aggregator.totals.sums.live_bytes, 10);
    close_fixture(&f);
}

// The writer of a checkpoint is a copy of the recorder, with all its open files.
static void a_slot_s_next_process_is_not_taken_for_the_one_before(void **state)
{
    (void)state;
    static struct fixture f;
    open_fixture(&f);
    const pid_t first = sleeping_child();
    struct lane_producer p;
    const uint32_t slot = join(&f, (uint32_t)first, 0);
    open_lane(&f, slot, &p);
    pass(&f);
    const pid_t writer = sleeping_child();
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

// The live bytes are known for each order of these: a child makes a block and exits, or is killed;
// its parent makes one, all in one tick or in two, before the recorder's pass or between its
// passes. Only a process that would have noted its exit counts as killed.
static void a_process_leaves_with_its_blocks(void **state)
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
        const pid_t child = sleeping_child();
        struct lane_producer outer;
        struct lane_producer inner;
        open_lane(&f, join(&f, (uint32_t)getpid(), 0), &outer);
        send_allocation(&outer, 1000);
        const uint32_t slot =
            join(&f, (uint32_t)child, PROCESS_FORKED | (notes_exit ? PROCESS_NOTES_EXIT : 0));
        session_process(f.on.mapping.header, slot)->pid_namespace = f.on.session.pid_namespace;
        open_lane(&f, slot, &inner);
        inner.lane->thread_id = (uint32_t)child; // so that the recorder finds the thread
        send_allocation(&inner, 500);
        if (is_looked_at) {
            pass(&f);
        }
        if (has_noted_exit) {
            struct process_slot *shared = session_process(f.on.mapping.header, slot);
            atomic_store(&shared->exit_ms, f.clock_ms);
        }
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, NULL, 0), child);
        if (is_later) {
            atomic_store(&f.on.session.header->clock_ms, ++f.clock_ms);
        }
        assert_true(lane_producer_tick(&outer));
        send_allocation(&outer, 500);
        const uint64_t deadline = now_s() + DEADLINE_S;
        while (f.on.drain.process_count > 1 || f.on.aggregator.totals.sums.allocations < 3) {
            assert_true(now_s() < deadline);
            pass(&f);
        }
        const struct aggregator *aggregator = &f.on.aggregator;
        assert_int_equal(aggregator->totals.sums.live_bytes, 1500);
        const struct rec_process *ended = &aggregator->processes.items[1]->record;
        const bool is_killed = notes_exit && !has_noted_exit;
        assert_int_equal((ended->flags & REC_PROCESS_KILLED) != 0, is_killed);
        assert_int_equal(ended->killed_threads, is_killed ? 1 : 0);
        close_fixture(&f);
    }
}

// Start a process that sleeps after an allocation, and read it until the time. *slot is its own.
static pid_t child_that_allocated(struct fixture *f, uint64_t until_ms, uint32_t *slot)
{
    const pid_t child = sleeping_child();
    struct lane_producer p;
    *slot = join(f, (uint32_t)child, PROCESS_FORKED);
    open_lane(f, *slot, &p);
    send_allocation(&p, 10);
    while (f->clock_ms < until_ms) {
        pass(f);
    }
    return child;
}

// The kernel's figure may be of the image before, and a program may overwrite what it noted.
static void a_noted_peak_counts_if_it_is_the_image_s_own(void **state)
{
    (void)state;
    static const struct {
        uint64_t joined_kib;
        uint64_t exit_kib;
        uint64_t peak_bytes;
    } cases[] = {
        {0, 2048, 2048 << 10}, {1024, 2048, 2048 << 10}, {2048, 2048, 0},    {0, 0, 0},
        {0, 1ull << 50, 0},    {0, 1ull << 62, 0},       {0, UINT64_MAX, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        static struct fixture f;
        open_fixture(&f);
        const pid_t child = sleeping_child();
        const uint32_t slot = join(&f, (uint32_t)child, 0);
        session_process(f.on.mapping.header, slot)->pid_namespace = f.on.session.pid_namespace;
        struct process_notes *notes = session_notes(f.on.mapping.header, slot);
        atomic_store(&notes->joined_rss_kib, cases[i].joined_kib);
        atomic_store(&notes->exit_rss_kib, cases[i].exit_kib);
        pass(&f);
        assert_int_equal(f.on.drain.process_count, 1);
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, NULL, 0), child);
        const uint64_t deadline = now_s() + DEADLINE_S;
        while (f.on.drain.process_count > 0) {
            pass(&f);
            assert_true(now_s() < deadline);
        }
        const struct rec_process *record = &f.on.aggregator.processes.items[0]->record;
        assert_int_equal(record->peak_rss_bytes, cases[i].peak_bytes);
        close_fixture(&f);
    }
}

// A dead process ends when it said, unless that is in the future: then at 7, where it was last
// found alive.
static void a_false_time_of_the_end_does_not_count(void **state)
{
    (void)state;
    static const struct {
        uint64_t exit_ms; // 0: it said none
        uint64_t end_ms;
    } cases[] = {{0, 7}, {1, 1}, {2, 2}, {6, 6}, {1000000, 7}, {UINT64_MAX, 7}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        static struct fixture f;
        open_fixture(&f);
        uint32_t slot;
        const pid_t child = child_that_allocated(&f, 8, &slot);
        atomic_store(&session_process(f.on.mapping.header, slot)->exit_ms, cases[i].exit_ms);
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, NULL, 0), child);
        const uint64_t deadline = now_s() + DEADLINE_S;
        while (f.on.drain.process_count > 0) {
            assert_true(now_s() < deadline);
            pass(&f);
        }
        const struct rec_process *record = &f.on.aggregator.processes.items[0]->record;
        assert_int_equal(record->end_ms, cases[i].end_ms);
        assert_int_equal(record->end_error_ms > 1, cases[i].end_ms == 7);
        close_fixture(&f);
    }
}

// Kill a process, and do passes at the present time until it is found dead.
static void kill_and_find(struct fixture *f, pid_t child)
{
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    const uint64_t deadline = now_s() + DEADLINE_S;
    while (f->on.drain.process_count > 0) {
        assert_true(now_s() < deadline);
        drain_find_dead(&f->on.drain);
        pass_now(f);
    }
}

// The clock rests at 3, and the process notes its end by the system's clock, 10 ms later and 10 ms
// before it is found dead.
static void an_end_that_was_noted_while_the_clock_rested_counts(void **state)
{
    (void)state;
    static struct fixture f;
    open_fixture(&f);
    uint32_t slot;
    const pid_t child = child_that_allocated(&f, 3, &slot);
    struct session_header *header = f.on.session.header;
    header->clock_start_ns = clock_monotonic_ns() - (f.clock_ms + 20) * NS_PER_MS;
    atomic_store(&header->clock_ms, SESSION_CLOCK_RESTS | f.clock_ms);
    atomic_store(&session_process(f.on.mapping.header, slot)->exit_ms, f.clock_ms + 10);
    kill_and_find(&f, child);
    const struct rec_process *record = &f.on.aggregator.processes.items[0]->record;
    assert_int_equal(record->end_ms, 13);
    assert_int_equal(record->end_error_ms, 1); // exact
    close_fixture(&f);
}

// The recorder stands still at 8 and has not set its clock yet. Its true time is 2000 when the
// process is found dead. A noted end may be as late as the clock stood still.
static void an_end_has_the_error_of_a_clock_that_stood_still(void **state)
{
    (void)state;
    enum {
        NOW_MS = 2000,
        GAP_MS = 700,
    };
    static const struct {
        uint64_t exit_ms; // 0: it said none
        uint64_t end_ms;
        uint64_t error_ms;
    } cases[] = {{0, 7, NOW_MS - 7}, {5, 5, 0}, {6, 6, GAP_MS}, {1500, 1500, 0}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        static struct fixture f;
        open_fixture(&f);
        uint32_t slot;
        const pid_t child = child_that_allocated(&f, 8, &slot);
        struct session_clock clock = {.session = &f.on.session,
                                      .start_ns = clock_monotonic_ns() - NOW_MS * NS_PER_MS,
                                      .lock = PTHREAD_MUTEX_INITIALIZER};
        clock_gaps_note(&clock.gaps, 6, 6 + GAP_MS, 1);
        f.on.drain.clock = &clock;
        atomic_store(&session_process(f.on.mapping.header, slot)->exit_ms, cases[i].exit_ms);
        kill_and_find(&f, child);
        const struct rec_process *record = &f.on.aggregator.processes.items[0]->record;
        assert_int_equal(record->end_ms, cases[i].end_ms);
        assert_true(record->end_error_ms >= 1 + cases[i].error_ms);
        assert_true(cases[i].exit_ms == 0 || record->end_error_ms == 1 + cases[i].error_ms);
        close_fixture(&f);
    }
}

// A process is idle from 1 to 50 and ends without a note, while another one is idle, too. It ends
// when it was last found alive, and so do its thread and its blocks, if it has some. Without a
// pidfd, looks are less frequent.
static void an_idle_process_ends_when_it_is_found_dead(void **state)
{
    (void)state;
    enum {
        IDLE_MS = 50,
        SCAN_MS = 10,
    };
    for (unsigned i = 0; i < 4; i++) {
        const bool has_events = (i & 1) != 0;
        const bool has_pidfd = (i & 2) != 0;
        static struct fixture f;
        open_fixture(&f);
        const pid_t child = sleeping_child();
        struct lane_producer p;
        (void)join(&f, (uint32_t)getpid(), 0);
        const uint32_t slot = join(&f, (uint32_t)child, PROCESS_FORKED);
        if (has_events) {
            open_lane(&f, slot, &p);
            p.lane->thread_id = (uint32_t)child; // so that the recorder finds the thread
            send_allocation(&p, 10);
        }
        pass(&f);
        struct drain_process *process = &f.on.drain.processes[slot];
        if (!has_pidfd) {
            fd_closep(&process->pidfd); // the epoll instance forgets it
        }
        while (f.clock_ms < IDLE_MS) {
            pass(&f);
        }
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, NULL, 0), child);
        const uint64_t deadline = now_s() + DEADLINE_S;
        while (f.on.drain.process_count > 1) {
            assert_true(now_s() < deadline);
            pass(&f);
        }
        const struct aggregator *aggregator = &f.on.aggregator;
        const struct rec_process *record = &aggregator->processes.items[1]->record;
        assert_in_range(record->end_ms, IDLE_MS - 1 - (has_pidfd ? 0 : SCAN_MS), IDLE_MS);
        assert_in_range(record->end_ms + record->end_error_ms - 1, IDLE_MS + 1, f.clock_ms);
        assert_int_equal(record->left_ms, record->end_ms + 1);
        assert_int_equal(aggregator->totals.now_ms, record->end_ms);
        assert_int_equal(aggregator->threads.threads.len, has_events);
        if (has_events) {
            assert_int_equal(aggregator->threads.threads.items[0].end_ms, record->end_ms);
        }
        close_fixture(&f);
    }
}

static void a_new_slot_of_the_same_pid_is_the_next_image(void **state)
{
    (void)state;
    static struct fixture f;
    open_fixture(&f);
    struct lane_producer before;
    struct lane_producer after;
    open_lane(&f, join(&f, (uint32_t)getpid(), 0), &before);
    send_allocation(&before, 5);
    pass(&f);
    send_allocation(&before, 6); // not read yet when the next image joins
    open_lane(&f, join(&f, (uint32_t)getpid(), 0), &after);
    send_free(&after, 5); // a row of the old image is none of the new one
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

// A look at 4 saw the image, and one at 20 another that had not joined. If that joins, it dates the
// end, and the heap has the blocks until then. Else the end lies between the looks: when that is
// given up, or when the process dies.
static void an_image_that_joins_late_dates_the_end_of_the_one_before(void **state)
{
    (void)state;
    enum {
        JOINS,
        IS_GIVEN_UP,
        DIES,
        WAYS,
        START_MS = 22,
    };
    for (int way = 0; way < WAYS; way++) {
        static struct fixture f;
        open_fixture(&f);
        uint32_t slot;
        const pid_t child = child_that_allocated(&f, 25, &slot);
        f.on.drain.processes[slot].image_ms = 4;
        f.on.drain.processes[slot].other_image_ms = 20;
        assert_int_equal(f.on.aggregator.totals.sums.live_bytes, 10);
        struct lane_producer next;
        if (way == JOINS) {
            const uint32_t next_slot = join(&f, (uint32_t)child, 0);
            session_process(f.on.session.memory, next_slot)->start_ms = START_MS;
            open_lane(&f, next_slot, &next);
            pass(&f);
        } else if (way == IS_GIVEN_UP) {
            assert_int_equal(drain_end_silent(&f.on.drain, slot, f.clock_ms), ERR_OK);
        }
        if (way != JOINS) {
            kill_and_find(&f, child);
        }
        const struct rec_process *record = &f.on.aggregator.processes.items[0]->record;
        assert_true(f.on.aggregator.processes.items[0]->is_ended);
        assert_int_equal(record->flags & (REC_PROCESS_EXECED | REC_PROCESS_KILLED),
                         REC_PROCESS_EXECED);
        assert_int_equal(record->end_ms, way == JOINS ? START_MS : 4);
        assert_int_equal(record->end_error_ms, way == JOINS ? 1 : 1 + 20 - 4);
        assert_int_equal(f.on.aggregator.totals.sums.live_bytes, 0);
        if (way == JOINS) {
            assert_int_equal(f.on.aggregator.processes.items[1]->record.epoch, 1);
            kill_and_find(&f, child);
        }
        close_fixture(&f);
    }
}

static void what_a_thread_has_not_sent_or_has_just_sent_is_not_counted(void **state)
{
    (void)state;
    static struct fixture f;
    open_fixture(&f);
    struct lane_producer own;
    const uint32_t slot = join(&f, (uint32_t)getpid(), 0);
    open_lane(&f, slot, &own);
    pass(&f);
    assert_true(drain_has_counted(&f.on.drain, slot));
    own.lane->keeps_book = 1;
    own.lane->book.has_counted = 1;
    assert_false(drain_has_counted(&f.on.drain, slot));
    assert_true(drain_has_counted(&f.on.drain, slot + 1));
    own.lane->book.has_counted = 0;
    send_allocation(&own, 5);
    assert_false(drain_has_counted(&f.on.drain, slot));
    pass(&f);
    assert_true(drain_has_counted(&f.on.drain, slot));
    close_fixture(&f);
}

static void a_slot_behind_one_that_is_being_filled_in_is_found(void **state)
{
    (void)state;
    static struct fixture f;
    open_fixture(&f);
    uint32_t claimed;
    assert_int_equal(session_claim_process(f.on.mapping.header, &claimed), ERR_OK);
    assert_int_equal(join(&f, (uint32_t)getpid(), 0), claimed + 1);
    pass(&f);
    assert_int_equal(f.on.drain.process_count, 1);
    close_fixture(&f);
}

// A program that cairn has attached to may have ended when it is found to have joined. Only then is
// the pid known by which it joins, if it lives in another namespace.
static void an_awaited_process_is_itself_although_it_has_ended(void **state)
{
    (void)state;
    static struct fixture f;
    open_fixture(&f);
    const uint32_t elsewhere = f.on.session.pid_namespace + 1;
    const struct rec_process record = {.pid = INT32_MAX, .exit_status = -1};
    struct awaited_process awaited = {.inner = {7, elsewhere}};
    assert_int_equal(aggregator_process_begin(&f.on.aggregator, &record, &awaited.process), ERR_OK);
    assert_int_equal(awaited_process_vec_push(&f.on.drain.awaited, awaited), ERR_OK);
    struct lane_producer lane;
    const uint32_t slot = join(&f, 7, 0);
    session_process(f.on.mapping.header, slot)->pid_namespace = elsewhere;
    open_lane(&f, slot, &lane);
    send_allocation(&lane, 1);
    pass(&f);
    assert_int_equal(f.on.drain.awaited.len, 0);
    assert_int_equal(f.on.aggregator.processes.len, 1);
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dead_process_is_read_to_its_last_record),
        cmocka_unit_test(a_process_that_was_overlooked_lived_beside_the_dead),
        cmocka_unit_test(a_life_within_a_pass_is_not_the_next_process_s),
        cmocka_unit_test(a_slot_s_next_process_is_not_taken_for_the_one_before),
        cmocka_unit_test(a_process_leaves_with_its_blocks),
        cmocka_unit_test(a_noted_peak_counts_if_it_is_the_image_s_own),
        cmocka_unit_test(a_false_time_of_the_end_does_not_count),
        cmocka_unit_test(an_end_that_was_noted_while_the_clock_rested_counts),
        cmocka_unit_test(an_end_has_the_error_of_a_clock_that_stood_still),
        cmocka_unit_test(an_idle_process_ends_when_it_is_found_dead),
        cmocka_unit_test(an_awaited_process_is_itself_although_it_has_ended),
        cmocka_unit_test(a_new_slot_of_the_same_pid_is_the_next_image),
        cmocka_unit_test(an_image_that_joins_late_dates_the_end_of_the_one_before),
        cmocka_unit_test(what_a_thread_has_not_sent_or_has_just_sent_is_not_counted),
        cmocka_unit_test(a_slot_behind_one_that_is_being_filled_in_is_found),
    };
    return cmocka_run_group_tests(tests, open_files_note, open_files_expect);
}
