// SPDX-License-Identifier: MIT
// recorder_snapshots: when samples and memory snapshots are taken, what a process that exits waits
// for, and whose memory the parts are. The recorded process is this one.
#include "recorder/recorder_snapshots.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "aggregate/aggregator_process.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "host/memory/page_size.h"

#define PAGE        page_bytes()
#define DEADLINE_NS 20000000000u
#define RANGE_BYTES (2048 * PAGE) // more than the areas of a sanitizer grow by

enum {
    DESCRIPTOR_BYTES = 2304, // of a thread, at the end of its stack
};

struct fixture {
    struct recorder_state *s;
    struct recorder_options options;
};

static void set_up(struct fixture *f)
{
    *f = (struct fixture){0};
    struct recorder_state *s = calloc(1, sizeof(*s));
    assert_non_null(s);
    f->s = s;
    s->options = &f->options;
    assert_int_equal(session_create(&(struct session_options){0}, &s->session, NULL), ERR_OK);
    assert_int_equal(aggregator_init(&s->aggregator), ERR_OK);
    assert_int_equal(
        run_control_init(&s->control, &f->options.run, s->session.header, &s->aggregator), ERR_OK);
    proc_sampler_init(&s->sampler);
    s->drain.main_slot = SESSION_MAX_PROCESSES;
}

static void tear_down(struct fixture *f)
{
    aside_free(f->s->waiting_aside);
    proc_sampler_release(&f->s->sampler);
    memory_snapshots_release(&f->s->memory_snapshots);
    aggregator_release(&f->s->aggregator);
    session_release(&f->s->session);
    free(f->s);
}

static struct drain_process *add_process(struct fixture *f, pid_t pid)
{
    const struct rec_process record = {.pid = (uint32_t)pid};
    struct aggregator_process *process = NULL;
    assert_int_equal(aggregator_process_begin(&f->s->aggregator, &record, &process), ERR_OK);
    struct drain *drain = &f->s->drain;
    drain->main_slot = pid == drain->main_pid ? drain->slot_count : drain->main_slot;
    struct drain_process *added = drain->processes + drain->slot_count++;
    *added = (struct drain_process){.aggregator = process, .pid = pid};
    return added;
}

static size_t last_count(const struct fixture *f)
{
    return f->s->memory_snapshots.last.memory_snapshots.len;
}

static uint32_t exit_wait_of(const struct fixture *f, uint32_t slot)
{
    return atomic_load(&session_process(f->s->session.memory, slot)->exit_wait);
}

static void a_short_run_has_its_snapshot_at_its_exit(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f);
    f.s->drain.main_pid = getpid();
    add_process(&f, getppid());
    add_process(&f, getpid());
    recorder_snapshots_round(f.s, 1);
    assert_int_equal(f.s->drain.main_slot, 1);
    assert_int_equal(exit_wait_of(&f, 0), EXIT_WAIT_NO);
    assert_int_equal(exit_wait_of(&f, 1), EXIT_WAIT_WANTED);
    assert_int_equal(f.s->sampled_processes, 2);
    assert_true(f.s->newcomers_ms >= 11);
    assert_true(f.s->owes_snapshot);
    assert_int_equal(last_count(&f), 0);
    recorder_snapshots_round(f.s, 9);
    assert_int_equal(last_count(&f), 0);
    assert_false(recorder_snapshots_are_awaited(f.s));
    recorder_snapshots_round(f.s, 10); // it is not that short
    assert_int_equal(last_count(&f), 2);
    assert_int_equal(f.s->memory_snapshots.last.time_ms, 10);
    assert_false(f.s->owes_snapshot);
    for (size_t i = 0; i < 2; i++) {
        const struct rec_memory_snapshot *snapshot =
            f.s->memory_snapshots.last.memory_snapshots.items + i;
        assert_int_equal(snapshot->process, i);
        assert_int_equal(snapshot->time_ms, 10);
        assert_int_equal(snapshot->flags & REC_SNAPSHOT_AT_EXIT, 0);
        assert_true(snapshot->rss_bytes > 0);
    }
    tear_down(&f);
}

// On a busy machine: its image has decided itself to wait.
static void a_run_that_waits_when_it_is_first_seen_has_its_snapshot(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f);
    f.s->drain.main_pid = getpid();
    add_process(&f, getpid());
    atomic_store(&session_process(f.s->session.memory, 0)->exit_ms, 1);
    atomic_store(&session_process(f.s->session.memory, 0)->exit_wait, EXIT_WAIT_WAITING);
    recorder_snapshots_round(f.s, 3);
    assert_int_equal(exit_wait_of(&f, 0), EXIT_WAIT_DONE);
    assert_int_equal(last_count(&f), 1);
    assert_int_equal(f.s->memory_snapshots.last.memory_snapshots.items[0].flags &
                         ~(uint32_t)REC_SNAPSHOT_RELEASED,
                     REC_SNAPSHOT_AT_EXIT);
    tear_down(&f);
}

static void a_run_that_is_asked_after_its_exit_has_its_snapshot_at_once(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f);
    f.s->drain.main_pid = getpid();
    add_process(&f, getpid());
    atomic_store(&session_process(f.s->session.memory, 0)->exit_ms, 1);
    recorder_snapshots_round(f.s, 2);
    assert_int_equal(exit_wait_of(&f, 0), EXIT_WAIT_WANTED);
    assert_false(f.s->owes_snapshot);
    assert_int_equal(last_count(&f), 1);
    tear_down(&f);
}

static void a_program_without_a_wait_has_its_snapshot_at_once(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f);
    add_process(&f, getpid()); // not the one that was started
    recorder_snapshots_round(f.s, 1);
    assert_int_equal(f.s->drain.main_slot, SESSION_MAX_PROCESSES);
    assert_false(recorder_snapshots_are_awaited(f.s));
    assert_false(f.s->owes_snapshot);
    assert_int_equal(last_count(&f), 1);
    assert_int_equal(f.s->sampler.samples.len, 1);
    assert_int_equal(f.s->sampler.samples.items[0].rss_bytes,
                     f.s->memory_snapshots.last.rss_bytes); // corrected
    tear_down(&f);
}

static void newcomers_are_sampled_soon(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f);
    add_process(&f, getpid());
    recorder_snapshots_round(f.s, 1);
    add_process(&f, getppid());
    f.s->newcomers_ms = 40;
    recorder_snapshots_round(f.s, 39);
    assert_int_equal(f.s->sampled_processes, 1);
    recorder_snapshots_round(f.s, 40);
    assert_int_equal(f.s->sampled_processes, 2);
    assert_true(f.s->newcomers_ms >= 50);
    // Without a process that runs, the next one need not wait.
    f.s->newcomers_ms = 60;
    add_process(&f, getpid());
    for (uint32_t slot = 0; slot < 3; slot++) {
        f.s->drain.processes[slot].is_dead = true;
    }
    recorder_snapshots_round(f.s, 60);
    assert_int_equal(f.s->sampled_processes, 3);
    assert_int_equal(f.s->newcomers_ms, 60);
    tear_down(&f);
}

// A process waits in its exit until its last event has been counted, or the ticks of its threads
// are over.
static void a_process_that_exits_is_let_go_after_its_snapshot(void **state)
{
    (void)state;
    for (int is_counted = 0; is_counted < 2; is_counted++) {
        static struct drain_lane lane;
        static struct lane_header header;
        struct fixture f;
        set_up(&f);
        f.s->drain.main_pid = getpid();
        add_process(&f, getppid());
        add_process(&f, getpid());
        recorder_snapshots_round(f.s, 100);
        assert_int_equal(f.s->drain.main_slot, 1);
        lane.process = 1;
        lane.reader.consumer.lane = &header;
        f.s->drain.lanes[5] = &lane;
        f.s->drain.active[0] = 5;
        f.s->drain.active_count = 1;
        header.keeps_book = 1;
        header.book.has_counted = is_counted == 0;
        struct process_slot *slot = session_process(f.s->session.memory, 1);
        atomic_store(&slot->exit_ms, 110);
        atomic_store(&slot->exit_wait, EXIT_WAIT_WAITING);
        assert_true(recorder_snapshots_are_awaited(f.s));
        recorder_snapshots_round(f.s, 111);
        assert_int_equal(exit_wait_of(&f, 1), is_counted != 0 ? EXIT_WAIT_DONE : EXIT_WAIT_WAITING);
        recorder_snapshots_round(f.s, 112);
        assert_int_equal(exit_wait_of(&f, 1), EXIT_WAIT_DONE);
        assert_int_equal(f.s->memory_snapshots.last.time_ms, is_counted != 0 ? 111 : 112);
        assert_int_equal(last_count(&f), 2);
        const struct rec_memory_snapshot *both = f.s->memory_snapshots.last.memory_snapshots.items;
        assert_int_equal(both[0].flags & REC_SNAPSHOT_AT_EXIT, 0);
        assert_int_equal(both[1].flags & REC_SNAPSHOT_AT_EXIT, REC_SNAPSHOT_AT_EXIT);
        assert_false(recorder_snapshots_are_awaited(f.s));
        assert_false(f.s->owes_snapshot);
        tear_down(&f);
    }
}

// Of two snapshots of one moment the recording would have one: the higher, which was taken before.
static void the_snapshot_at_the_exit_has_a_moment_of_its_own(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f);
    f.s->drain.main_pid = getpid();
    add_process(&f, getpid());
    recorder_snapshots_round(f.s, 100);
    assert_int_equal(f.s->memory_snapshots.last.time_ms, 100);
    atomic_store(&session_process(f.s->session.memory, 0)->exit_ms, 98);
    atomic_store(&session_process(f.s->session.memory, 0)->exit_wait, EXIT_WAIT_WAITING);
    recorder_snapshots_round(f.s, 100);
    assert_int_equal(exit_wait_of(&f, 0), EXIT_WAIT_WAITING);
    assert_int_equal(f.s->memory_snapshots.series.len, 1);
    recorder_snapshots_round(f.s, 101);
    assert_int_equal(exit_wait_of(&f, 0), EXIT_WAIT_DONE);
    assert_int_equal(f.s->memory_snapshots.last.time_ms, 101);
    assert_int_equal(f.s->memory_snapshots.series.len, 2);
    tear_down(&f);
}

static pid_t confined_child(void)
{
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
        struct sock_filter filter[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
        const struct sock_fprog program = {.len = 1, .filter = filter};
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        (void)prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
        (void)!write(ready[1], "x", 1);
        (void)pause();
        _exit(0);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(close(ready[0]), 0);
    assert_int_equal(close(ready[1]), 0);
    return child;
}

// A filter might forbid the wait. A request that was made before is taken back.
static void a_confined_process_is_not_asked_to_wait(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f);
    const pid_t child = confined_child();
    f.s->drain.main_pid = child;
    add_process(&f, child);
    recorder_snapshots_round(f.s, 1);
    assert_int_equal(exit_wait_of(&f, 0), EXIT_WAIT_NO);
    assert_int_equal(last_count(&f), 1); // so it does not wait either
    atomic_store(&session_process(f.s->session.memory, 0)->exit_wait, EXIT_WAIT_WANTED);
    recorder_snapshots_round(f.s, 10000);
    assert_int_equal(exit_wait_of(&f, 0), EXIT_WAIT_NO);
    // One that waits already keeps waiting for its answer.
    atomic_store(&session_process(f.s->session.memory, 0)->exit_ms, 30000);
    atomic_store(&session_process(f.s->session.memory, 0)->exit_wait, EXIT_WAIT_WAITING);
    recorder_snapshots_round(f.s, 20000);
    assert_int_equal(exit_wait_of(&f, 0), EXIT_WAIT_DONE);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    tear_down(&f);
}

static void only_what_can_be_read_is_in_a_snapshot(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f);
    const pid_t gone = fork();
    if (gone == 0) {
        _exit(0);
    }
    assert_int_equal(waitpid(gone, NULL, 0), gone);
    add_process(&f, gone);
    assert_int_equal(recorder_snapshots_now(f.s, 5), ERR_OK);
    assert_int_equal(last_count(&f), 0);
    assert_int_equal(f.s->memory_snapshots.asked_count, 0);
    add_process(&f, getpid())->is_dead = true;
    f.s->drain.slot_count++; // never used
    assert_int_equal(recorder_snapshots_now(f.s, 6), ERR_OK);
    assert_int_equal(last_count(&f), 0);
    add_process(&f, getpid());
    assert_int_equal(recorder_snapshots_now(f.s, 7), ERR_OK);
    assert_int_equal(last_count(&f), 1);
    assert_int_equal(f.s->memory_snapshots.last.memory_snapshots.items[0].process, 2);
    assert_int_equal(f.s->memory_snapshots.asked_count, 1);
    tear_down(&f);
}

// The recorder may be preempted between what it has counted and what it reads of a process. It
// learns what had happened by then one tick later.
static void snapshots_of_another_heap_than_the_counted_are_doubted(void **state)
{
    (void)state;
    enum {
        KNOWN_MS = 5000 // beyond all the time that taking a snapshot may need
    };
    const struct {
        uint64_t live_bytes; // more than at the snapshot
        uint64_t mapped_bytes;
        uint64_t asked_ms;
        bool is_ended;
        bool is_doubted;
        bool is_estimate;
    } cases[] = {
        {.asked_ms = KNOWN_MS},
        {.live_bytes = PAGE, .asked_ms = KNOWN_MS},
        {.live_bytes = UINT64_C(1) << 40, .is_doubted = true, .is_estimate = true},
        {.live_bytes = UINT64_C(1) << 40,
         .asked_ms = KNOWN_MS, // nothing says that it is later
         .is_doubted = true,
         .is_estimate = true},
        {.live_bytes = -(UINT64_C(1) << 40), .is_doubted = true, .is_estimate = true},
        {.mapped_bytes = UINT64_C(1) << 40, .is_doubted = true},
        {.live_bytes = UINT64_C(1) << 40, .is_ended = true},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct fixture f;
        set_up(&f);
        f.s->tick_ms = 1;
        struct aggregator_process *process = add_process(&f, getpid())->aggregator;
        process->live_bytes = UINT64_C(1) << 41;
        process->mapped_bytes = UINT64_C(1) << 41;
        recorder_snapshots_round(f.s, 100);
        assert_int_equal(last_count(&f), 1);
        process->live_bytes += cases[i].live_bytes;
        process->mapped_bytes += cases[i].mapped_bytes;
        process->is_ended = cases[i].is_ended;
        const uint64_t known_ms = f.s->unjudged_ms + 2;
        f.s->drain.processes[0].is_dead = true; // no other snapshot follows
        recorder_snapshots_round(f.s, known_ms);
        assert_false(f.s->memory_snapshots.doubts_peak); // not all is known yet
        recorder_snapshots_round(f.s, known_ms + 1 + cases[i].asked_ms);
        assert_int_equal(f.s->memory_snapshots.doubts_peak, cases[i].is_doubted);
        const uint32_t flags = f.s->memory_snapshots.last.memory_snapshots.items[0].flags;
        assert_int_equal((flags & REC_SNAPSHOT_ESTIMATED) != 0, cases[i].is_estimate);
        recorder_snapshots_round(f.s, UINT64_C(2) * KNOWN_MS);
        assert_int_equal(f.s->unjudged_ms, 0);
        tear_down(&f);
    }
}

// A growing program may have so many events in its lanes that the next snapshots come first.
static void snapshots_are_judged_before_the_next_ones(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f);
    f.s->tick_ms = 1;
    struct aggregator_process *process = add_process(&f, getpid())->aggregator;
    recorder_snapshots_round(f.s, 100);
    assert_int_equal(last_count(&f), 1);
    process->live_bytes += UINT64_C(1) << 40;
    assert_int_equal(recorder_snapshots_now(f.s, 101), ERR_OK);
    const struct rec_memory_snapshot_vec *series = &f.s->memory_snapshots.series;
    assert_int_equal(series->len, 1); // the next ones replace what is doubted
    assert_int_equal(series->items[0].time_ms, 101);
    assert_int_equal(series->items[0].flags & REC_SNAPSHOT_ESTIMATED, 0);
    tear_down(&f);
}

// However late they are read: nothing else says what had happened by the end of the snapshots.
static void expect_judged_when_counted(bool is_in_book)
{
    enum {
        LATE_MS = 5000
    };
    struct drain_lane lane = {0};
    static struct lane_header header;
    struct fixture f;
    set_up(&f);
    f.s->tick_ms = 1;
    struct aggregator_process *process = add_process(&f, getpid())->aggregator;
    lane.process = 0;
    lane.reader.consumer.lane = &header;
    f.s->drain.lanes[5] = &lane;
    f.s->drain.active[0] = 5;
    f.s->drain.active_count = 1;
    header.keeps_book = 1;
    header.book.has_counted = is_in_book;
    atomic_store(&header.write_pos, is_in_book ? 0 : 4096);
    recorder_snapshots_round(f.s, 100);
    assert_int_equal(last_count(&f), 1);
    f.s->drain.processes[0].is_dead = true; // no other snapshot follows
    recorder_snapshots_round(f.s, 100 + LATE_MS);
    assert_false(f.s->memory_snapshots.doubts_peak);
    lane.reader.consumer.read_pos = atomic_load(&header.write_pos);
    header.book.has_counted = 0;
    process->live_bytes += UINT64_C(1) << 40;
    recorder_snapshots_round(f.s, 100 + UINT64_C(2) * LATE_MS);
    assert_true(f.s->memory_snapshots.doubts_peak);
    assert_int_equal(f.s->memory_snapshots.last.memory_snapshots.items[0].flags &
                         REC_SNAPSHOT_ESTIMATED,
                     REC_SNAPSHOT_ESTIMATED);
    tear_down(&f);
}

static void events_that_waited_in_a_lane_judge_a_snapshot(void **state)
{
    (void)state;
    expect_judged_when_counted(false);
    expect_judged_when_counted(true);
}

// All that was allocated may be freed again when the events are read.
static void a_heap_that_grew_and_shrank_meanwhile_is_noticed(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f);
    f.s->tick_ms = 1;
    (void)add_process(&f, getpid());
    recorder_snapshots_round(f.s, 100);
    assert_int_equal(last_count(&f), 1);
    f.s->drain.processes[0].is_dead = true; // no other snapshot follows
    f.s->aggregator.totals.peak_bytes += UINT64_C(1) << 40;
    recorder_snapshots_round(f.s, f.s->unjudged_ms + 3);
    assert_true(f.s->memory_snapshots.doubts_peak);
    assert_int_equal(f.s->memory_snapshots.last.memory_snapshots.items[0].flags &
                         REC_SNAPSHOT_ESTIMATED,
                     REC_SNAPSHOT_ESTIMATED);
    tear_down(&f);
}

// A service that sleeps may allocate nothing for hours.
static void an_attached_process_is_looked_at_before_it_joins(void **state)
{
    (void)state;
    struct attach attach = {.inject.target.pid = getpid()};
    struct fixture f;
    set_up(&f);
    const struct rec_process record = {.pid = (uint32_t)getpid(), .flags = REC_PROCESS_ATTACHED};
    struct aggregator_process *process = NULL;
    assert_int_equal(aggregator_process_begin(&f.s->aggregator, &record, &process), ERR_OK);
    assert_int_equal(awaited_processes_add(&f.s->drain.awaited, process), ERR_OK);
    assert_int_equal(
        attached_process_vec_push(&f.s->attached, (struct attached_process){.attach = &attach}),
        ERR_OK);
    recorder_snapshots_round(f.s, 1);
    assert_int_equal(f.s->sampler.samples.len, 1);
    assert_int_equal(f.s->sampler.samples.items[0].process, process->index);
    assert_int_equal(last_count(&f), 1);
    assert_true(f.s->memory_snapshots.last.rss_bytes > 0);
    assert_true(process->record.peak_rss_bytes > 0);
    // It joins: it is not looked at twice.
    assert_ptr_equal(awaited_processes_take(&f.s->drain.awaited, getpid()), process);
    f.s->drain.processes[f.s->drain.slot_count++] =
        (struct drain_process){.aggregator = process, .pid = getpid()};
    assert_int_equal(recorder_snapshots_now(f.s, 2), ERR_OK);
    assert_int_equal(last_count(&f), 1);
    // It ends before it has joined, and another process may have its pid.
    f.s->drain.slot_count = 0;
    assert_int_equal(awaited_processes_add(&f.s->drain.awaited, process), ERR_OK);
    f.s->attached.items[0].has_ended = true;
    recorder_snapshots_round(f.s, 10000);
    assert_int_equal(f.s->sampler.samples.len, 1);
    awaited_process_vec_release(&f.s->drain.awaited);
    attached_process_vec_release(&f.s->attached);
    tear_down(&f);
}

// Map pages between two that no area can be joined with, and touch them. A page without access
// before them would make them a stack.
static uint64_t map_range(void)
{
    uint8_t *all =
        mmap(NULL, RANGE_BYTES + 2 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(all != MAP_FAILED);
    assert_int_equal(mprotect(all + PAGE, RANGE_BYTES, PROT_READ | PROT_WRITE), 0);
    memset(all + PAGE, 1, RANGE_BYTES);
    return (uint64_t)all + PAGE;
}

static struct rec_memory_snapshot take(struct fixture *f)
{
    assert_int_equal(recorder_snapshots_now(f->s, 1), ERR_OK);
    assert_int_equal(last_count(f), 1);
    return f->s->memory_snapshots.last.memory_snapshots.items[0];
}

// Beside the range, the session that this process has mapped may grow by some pages.
static void assert_own(struct fixture *f, uint64_t other_bytes)
{
    const uint64_t own_bytes = take(f).own_bytes;
    assert_in_range(own_bytes, other_bytes + RANGE_BYTES, other_bytes + 2 * RANGE_BYTES - 1);
}

// What the process notes of cairn's memory, and the stacks of threads with lanes.
static void memory_belongs_to_cairn_and_to_stacks(void **state)
{
    (void)state;
    static struct drain_lane lane;
    static struct lane_header header;
    struct fixture f;
    set_up(&f);
    add_process(&f, getppid())->is_dead = true;
    add_process(&f, getpid());
    const uint64_t own = map_range();
    const uint64_t stack = map_range();
    struct process_notes *notes = session_notes(f.s->session.memory, 1);
    const uint64_t note = own / PAGE_GRAIN << PAGE_NOTE_GRAINS_BITS | RANGE_BYTES / PAGE_GRAIN;
    const struct rec_memory_snapshot before = take(&f);
    atomic_store(&notes->ranges[0], note);
    assert_own(&f, before.own_bytes);
    atomic_store(&notes->ranges[0], 0);
    atomic_store(&notes->ranges[PAGE_NOTES_MAX - 1], note);
    assert_own(&f, before.own_bytes);
    header.self_address = stack + RANGE_BYTES - DESCRIPTOR_BYTES;
    lane.reader.consumer.lane = &header;
    f.s->drain.lanes[5] = &lane;
    f.s->drain.active[0] = 5;
    f.s->drain.active_count = 1;
    const uint64_t without = take(&f).stack_bytes; // the lane of another process
    assert_true(without < before.stack_bytes + RANGE_BYTES);
    lane.process = 1;
    assert_true(take(&f).stack_bytes >= without + RANGE_BYTES);
    header.self_address -= 100; // in that page
    assert_true(take(&f).stack_bytes >= without + RANGE_BYTES);
    header.self_address += PAGE;
    assert_true(take(&f).stack_bytes < without + RANGE_BYTES);
    assert_int_equal(munmap((void *)(own - PAGE), RANGE_BYTES + 2 * PAGE), 0);
    assert_int_equal(munmap((void *)(stack - PAGE), RANGE_BYTES + 2 * PAGE), 0);
    tear_down(&f);
}

// It has not let itself be read before.
static void a_process_that_is_not_read_has_no_snapshot(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f);
    add_process(&f, getppid())->aggregator->is_unread = true;
    add_process(&f, getpid());
    recorder_snapshots_round(f.s, 100);
    assert_int_equal(last_count(&f), 1);
    assert_int_equal(f.s->memory_snapshots.last.memory_snapshots.items[0].process, 1);
    assert_int_equal(f.s->sampler.samples.len, 1);
    tear_down(&f);
}

struct errand {
    sem_t may_end;
    sem_t was_released;
};

static void wait_for_leave(void *context)
{
    struct errand *errand = context;
    while (sem_wait(&errand->may_end) != 0) {
    }
}

static void release_errand(void *context)
{
    struct errand *errand = context;
    (void)sem_post(&errand->was_released);
}

static void work_without_end_does_not_delay_the_end(void **state)
{
    (void)state;
    struct fixture f;
    struct errand errand;
    const struct aside_work work = {
        .run = wait_for_leave, .release = release_errand, .context = &errand};
    set_up(&f);
    assert_int_equal(sem_init(&errand.may_end, 0, 0), 0);
    assert_int_equal(sem_init(&errand.was_released, 0, 0), 0);
    f.s->is_stopped = true;
    assert_int_equal(recorder_do_aside(f.s, &work), ERR_CANCELLED);
    assert_int_equal(f.s->left_asides, 1);
    assert_int_equal(sem_post(&errand.may_end), 0);
    while (sem_wait(&errand.was_released) != 0) { // its thread had it
    }
    tear_down(&f);
}

// Work until the recorder has served the processes once: it reads a signal then.
static void wait_for_service(void *context)
{
    const int *signals = context;
    const struct signalfd_siginfo signal = {.ssi_signo = SIGCHLD};
    const uint64_t deadline_ns = clock_monotonic_ns() + DEADLINE_NS;
    int waiting = write(signals[1], &signal, sizeof(signal)) == (ssize_t)sizeof(signal);
    while (waiting > 0 && clock_monotonic_ns() < deadline_ns) {
        (void)sched_yield();
        (void)ioctl(signals[0], FIONREAD, &waiting);
    }
}

static void stay(void *context)
{
    (void)context;
}

// Else a program whose file takes 0.1 s to read makes the order of pids uncertain, and all
// processes of the machine are searched at the end.
static void pids_are_looked_at_during_work_aside(void **state)
{
    (void)state;
    struct fixture f;
    int signals[2];
    const struct aside_work work = {.run = wait_for_service, .release = stay, .context = signals};
    set_up(&f);
    assert_int_equal(pipe2(signals, O_NONBLOCK | O_CLOEXEC), 0);
    f.options.follow_children = true;
    f.s->signal_fd = signals[0];
    f.s->socket.listener = -1;
    assert_int_equal(drain_init(&f.s->drain, &f.s->session, &f.s->aggregator, NULL), ERR_OK);
    assert_int_equal(session_clock_start(&f.s->clock, &f.s->session, -1, 1, NULL), ERR_OK);
    assert_int_equal(recorder_do_aside(f.s, &work), ERR_OK);
    assert_int_not_equal(f.s->pending.order.look_ms, 0);
    session_clock_stop(&f.s->clock);
    drain_release(&f.s->drain);
    assert_int_equal(close(signals[0]) + close(signals[1]), 0);
    tear_down(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_that_is_not_read_has_no_snapshot),
        cmocka_unit_test(work_without_end_does_not_delay_the_end),
        cmocka_unit_test(pids_are_looked_at_during_work_aside),
        cmocka_unit_test(a_short_run_has_its_snapshot_at_its_exit),
        cmocka_unit_test(a_run_that_waits_when_it_is_first_seen_has_its_snapshot),
        cmocka_unit_test(a_run_that_is_asked_after_its_exit_has_its_snapshot_at_once),
        cmocka_unit_test(a_program_without_a_wait_has_its_snapshot_at_once),
        cmocka_unit_test(newcomers_are_sampled_soon),
        cmocka_unit_test(a_process_that_exits_is_let_go_after_its_snapshot),
        cmocka_unit_test(the_snapshot_at_the_exit_has_a_moment_of_its_own),
        cmocka_unit_test(a_confined_process_is_not_asked_to_wait),
        cmocka_unit_test(only_what_can_be_read_is_in_a_snapshot),
        cmocka_unit_test(snapshots_of_another_heap_than_the_counted_are_doubted),
        cmocka_unit_test(snapshots_are_judged_before_the_next_ones),
        cmocka_unit_test(events_that_waited_in_a_lane_judge_a_snapshot),
        cmocka_unit_test(a_heap_that_grew_and_shrank_meanwhile_is_noticed),
        cmocka_unit_test(an_attached_process_is_looked_at_before_it_joins),
        cmocka_unit_test(memory_belongs_to_cairn_and_to_stacks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
