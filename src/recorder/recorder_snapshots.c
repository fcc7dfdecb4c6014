// SPDX-License-Identifier: MIT
#include "recorder/recorder_snapshots.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/futex.h>

#include "aggregate/aggregator_process.h"
#include "base/clock.h"
#include "base/minmax.h"
#include "host/os/file.h"
#include "host/os/proc_file.h"

enum {
    PAGE = 4096,
    // about the size of glibc's struct pthread, which ends a thread's stack
    DESCRIPTOR_BYTES = 2304,
    FIRST_SNAPSHOT_MS = 10,
    NEWCOMERS_MS = 10,    // a process that has just joined is sampled soon
    WAITING_DIVISOR = 25, // waiting costs this part of what working does
    JUDGED_MS = 10,       // later, a change of the heap says nothing of a snapshot
};

// The start of something whose cost is bounded.
struct expense {
    uint64_t began_ns;
    uint64_t processor_ns; // of this thread
};

static struct expense expense_begin(void)
{
    return (struct expense){.began_ns = clock_monotonic_ns(),
                            .processor_ns = clock_thread_cpu_ns()};
}

// Return the processor time. Waiting for it on a busy machine, or for the kernel's lock of a
// program's memory, costs little, but should not take all the time.
static uint64_t expense_ns(const struct expense *expense)
{
    const uint64_t used_ns = clock_thread_cpu_ns() - expense->processor_ns;
    const uint64_t waited_ns = (clock_monotonic_ns() - expense->began_ns) / WAITING_DIVISOR;
    return used_ns > waited_ns ? used_ns : waited_ns;
}

// Collect the memory that the preload library has noted as its own. The program may have
// overwritten the notes: ranges are only compared with the kernel's.
static enum err
own_ranges(const struct recorder_state *s, uint32_t slot, struct address_range_vec *out)
{
    const struct process_notes *notes = session_notes(s->session.memory, slot);
    for (uint32_t i = 0; i < PAGE_NOTES_MAX; i++) {
        const uint64_t note = atomic_load_explicit(&notes->ranges[i], memory_order_relaxed);
        const uint64_t start = (note >> PAGE_NOTE_PAGES_BITS) * PAGE;
        const uint64_t pages = note & (((uint64_t)1 << PAGE_NOTE_PAGES_BITS) - 1);
        if (note != 0) {
            TRY(address_range_vec_push(
                out, (struct address_range){.start = start, .end = start + pages * PAGE}));
        }
    }
    return ERR_OK;
}

// Collect the ends of the stacks of threads with lanes. A thread's descriptor is at the top of its
// stack.
static enum err stack_tops(const struct recorder_state *s, uint32_t slot, struct u64_vec *out)
{
    const struct drain *drain = &s->drain;
    for (uint32_t i = 0; i < drain->active_count; i++) {
        const struct drain_lane *lane = drain->lanes[drain->active[i]];
        if (lane->process == slot) {
            const uint64_t self = lane->reader.consumer.lane->self_address;
            TRY(u64_vec_push(out, (self + DESCRIPTOR_BYTES + PAGE - 1) & ~(uint64_t)(PAGE - 1)));
        }
    }
    return ERR_OK;
}

// Others shall not wait for a process with a long map.
static void drain_meanwhile(void *context)
{
    (void)!recorder_drain(context); // a failure is seen at the next one
}

// Take a snapshot of one process. An unreadable process is omitted.
static enum err take_snapshot_of(struct recorder_state *s,
                                 uint32_t slot,
                                 uint32_t flags,
                                 struct memory_moment *moment)
{
    const struct drain_process *process = s->drain.processes + slot;
    const struct aggregator_process *before = process->aggregator;
    const pid_t pid = proc_file_living(process->pid);
    const struct reading_pause pause = {.take = drain_meanwhile, .context = s};
    CLEANUP(memory_areas_release) struct memory_areas map = {0};
    if (memory_areas_read(pid, &pause, &map) != ERR_OK || process->aggregator != before ||
        process->is_dead) { // it may have ended meanwhile
        return ERR_OK;
    }
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid); // fits
    CLEANUP(fd_closep) int memory = open(path, O_RDONLY | O_CLOEXEC);
    (void)snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)pid); // fits
    CLEANUP(fd_closep) int pagemap = open(path, O_RDONLY | O_CLOEXEC);
    const struct page_source pages = {.read = pagemap >= 0 ? pagemap_read : NULL,
                                      .context = &pagemap};
    memory_areas_bound_bss(&map, memory, &pages);
    CLEANUP(address_range_vec_release) struct address_range_vec own = {0};
    CLEANUP(u64_vec_release) struct u64_vec tops = {0};
    TRY(own_ranges(s, slot, &own));
    TRY(stack_tops(s, slot, &tops));
    const struct rss_process what = {
        .aggregator = &s->aggregator,
        .process = process->aggregator,
        .own = &own,
        .stack_tops = &tops,
        .is_heap_known =
            run_control_is_whole(&s->control) &&
            (process->aggregator->record.flags &
             (REC_PROCESS_FORKED | REC_PROCESS_OWN_ALLOCATOR | REC_PROCESS_ATTACHED)) == 0,
        .pages = pages,
    };
    struct rec_memory_snapshot snapshot = {
        .time_ms = moment->time_ms, .process = process->aggregator->index, .flags = flags};
    TRY(rss_split(&what, &map, (uint32_t)moment->memory_snapshots.len, &s->aggregator.strings,
                  &snapshot, &moment->tables));
    process->aggregator->snapshot_live_bytes = process->aggregator->live_bytes;
    process->aggregator->snapshot_mapped_bytes = process->aggregator->mapped_bytes;
    return rec_memory_snapshot_vec_push(&moment->memory_snapshots, snapshot);
}

// Note what the threads had sent by the end of a snapshot.
static void note_backlog(struct recorder_state *s)
{
    for (uint32_t i = 0; i < s->drain.active_count; i++) {
        struct drain_lane *lane = s->drain.lanes[s->drain.active[i]];
        // Relaxed: only compared; the program may write anything there.
        lane->snapshot_pos =
            atomic_load_explicit(&lane->reader.consumer.lane->write_pos, memory_order_relaxed);
    }
}

// Make pages that several processes share count once, and correct the samples by that.
static void settle(struct recorder_state *s, struct memory_moment *moment)
{
    struct rec_memory_snapshot *snapshots = moment->memory_snapshots.items;
    shared_pages_settle(&moment->tables.claims, moment->tables.parts.items, snapshots);
    for (size_t i = 0; i < moment->memory_snapshots.len; i++) {
        moment->rss_bytes += rec_snapshot_counted_rss(snapshots + i);
        proc_sampler_correct(&s->sampler, snapshots + i);
    }
}

static enum err
take_snapshots(struct recorder_state *s, uint64_t now_ms, uint32_t flags, bool was_asked)
{
    const struct expense expense = expense_begin();
    CLEANUP(memory_moment_release) struct memory_moment moment = {.time_ms = now_ms};
    for (uint32_t slot = 0; slot < s->drain.slot_count; slot++) {
        const struct drain_process *process = s->drain.processes + slot;
        if (process->aggregator != NULL && !process->is_dead) {
            const bool is_exiting =
                slot == s->drain.main_slot && (flags & REC_SNAPSHOT_AT_EXIT) != 0;
            TRY(take_snapshot_of(s, slot, is_exiting ? REC_SNAPSHOT_AT_EXIT : 0, &moment));
        }
    }
    if (moment.memory_snapshots.len == 0) {
        return ERR_OK;
    }
    note_backlog(s);
    settle(s, &moment);
    // A process that waits at its exit changes nothing meanwhile. The session's clock may be late
    // if the recorder was stopped.
    const uint64_t end_ms = now_ms + (clock_monotonic_ns() - expense.began_ns) / NS_PER_MS;
    s->unjudged_ms =
        (flags & REC_SNAPSHOT_AT_EXIT) != 0 ? 0 : max_u64(end_ms, session_clock_now(&s->clock));
    return memory_snapshots_add(&s->memory_snapshots, &moment, was_asked, expense_ns(&expense));
}

static uint64_t distance(uint64_t one, uint64_t other)
{
    return one > other ? one - other : other - one;
}

// Return whether events of before the end of the snapshot still wait in a lane. A program that
// writes nonsense there has its snapshots unjudged.
static bool has_backlog(const struct recorder_state *s)
{
    for (uint32_t i = 0; i < s->drain.active_count; i++) {
        const struct drain_lane *lane = s->drain.lanes[s->drain.active[i]];
        if (!lane->is_corrupt && lane->reader.consumer.read_pos < lane->snapshot_pos) {
            return true;
        }
    }
    return false;
}

// Doubt the latest snapshots if the heap changed while they were taken: by what is known when the
// ticks of the threads are over, so that what they had done by then is counted. It is counted some
// milliseconds later if the whole recorder was stopped, its clock included. While events wait in
// the lanes, the heap of that moment is not known, however late it is.
static void judge(struct recorder_state *s, uint64_t now_ms)
{
    if (s->unjudged_ms != 0 && has_backlog(s)) {
        s->unjudged_ms = max_u64(s->unjudged_ms, now_ms);
    }
    const uint64_t known_ms = s->unjudged_ms + s->tick_ms + 1;
    if (s->unjudged_ms == 0 || now_ms <= known_ms) {
        return;
    }
    const struct memory_moment *last = &s->memory_snapshots.last;
    uint64_t live_bytes = 0;
    uint64_t mapped_bytes = 0;
    for (size_t i = 0; i < last->memory_snapshots.len; i++) {
        const uint32_t index = last->memory_snapshots.items[i].process;
        const struct aggregator_process *process = s->aggregator.processes.items[index];
        if (!process->is_ended) {
            live_bytes += distance(process->live_bytes, process->snapshot_live_bytes);
            mapped_bytes += distance(process->mapped_bytes, process->snapshot_mapped_bytes);
        }
    }
    const uint64_t much_bytes = last->rss_bytes / SNAPSHOT_GROWTH_DIVISOR;
    const bool is_late = now_ms > known_ms + JUDGED_MS;
    if (live_bytes > much_bytes || mapped_bytes > much_bytes) {
        memory_snapshots_doubt(&s->memory_snapshots, live_bytes > much_bytes && !is_late);
        s->unjudged_ms = 0;
    } else if (is_late) {
        s->unjudged_ms = 0;
    }
}

enum err recorder_snapshots_now(struct recorder_state *s, uint64_t now_ms)
{
    return take_snapshots(s, now_ms, 0, true);
}

// Return the slot of the main program's present image, NULL if none has joined.
static struct process_slot *program_slot(const struct recorder_state *s)
{
    return s->drain.main_slot != SESSION_MAX_PROCESSES
               ? session_process(s->session.memory, s->drain.main_slot)
               : NULL;
}

// Request that the main program's present image waits at its exit, if it has not decided so itself,
// or take that back.
static void ask_to_wait(struct process_slot *slot, bool is_confined)
{
    uint32_t expected = is_confined ? EXIT_WAIT_WANTED : EXIT_WAIT_NO;
    // Relaxed: the request orders nothing else. An image that waits already keeps waiting.
    (void)atomic_compare_exchange_strong_explicit(&slot->exit_wait, &expected,
                                                  is_confined ? EXIT_WAIT_NO : EXIT_WAIT_WANTED,
                                                  memory_order_relaxed, memory_order_relaxed);
}

// Sample all processes; memory snapshots of them `follow` or not. Return their sum.
static uint64_t sample_all(struct recorder_state *s, uint64_t now_ms, bool follows)
{
    for (uint32_t slot = 0; slot < s->drain.slot_count; slot++) {
        const struct drain_process *process = s->drain.processes + slot;
        if (process->aggregator == NULL || process->is_dead) {
            continue;
        }
        struct proc_sample_facts facts = {0};
        (void)proc_sampler_take(&s->sampler, process->pid, process->aggregator, now_ms, follows,
                                &facts); // 0: it has ended
        if (slot == s->drain.main_slot) {
            ask_to_wait(program_slot(s), facts.is_confined);
        }
    }
    return proc_sampler_settle(&s->sampler);
}

bool recorder_snapshots_are_awaited(const struct recorder_state *s)
{
    const struct process_slot *slot = program_slot(s);
    // Acquire: pairs with the release in exit_wait_await; exit_ms and what was sent come first.
    return slot != NULL &&
           atomic_load_explicit(&slot->exit_wait, memory_order_acquire) == EXIT_WAIT_WAITING;
}

// Return whether the main program waits, and everything before its exit has been counted: its
// threads have sent all, or their ticks are over, so that the recorder has taken what they held.
// Its last snapshot is not of the moment of an earlier one, because a moment has one.
static bool is_waiting(const struct recorder_state *s, uint64_t now_ms)
{
    return recorder_snapshots_are_awaited(s) && now_ms != s->memory_snapshots.last.time_ms &&
           (now_ms > 1 + atomic_load_explicit(&program_slot(s)->exit_ms, memory_order_relaxed) ||
            drain_has_counted(&s->drain, s->drain.main_slot));
}

static void let_go(struct process_slot *slot)
{
    atomic_store_explicit(&slot->exit_wait, EXIT_WAIT_DONE, memory_order_relaxed); // as requested
    (void)syscall(SYS_futex, &slot->exit_wait, FUTEX_WAKE, INT_MAX, NULL, NULL,
                  0); // its wait has a deadline
}

// Glance at all processes. Return their sum.
static uint64_t glance_at_all(struct recorder_state *s, uint64_t now_ms)
{
    const struct expense expense = expense_begin();
    for (uint32_t slot = 0; slot < s->drain.slot_count; slot++) {
        const struct drain_process *process = s->drain.processes + slot;
        if (process->aggregator != NULL && !process->is_dead) {
            proc_sampler_glance(&s->sampler, process->pid, process->aggregator, now_ms);
        }
    }
    return proc_sampler_end_glances(&s->sampler, now_ms, expense_ns(&expense));
}

// Whether the first snapshot can wait. A short run has one at its exit, where it waits for it, and
// an earlier one would only take its time. A run that had passed its exit before it was asked does
// not wait.
static bool may_wait(const struct recorder_state *s, uint64_t now_ms)
{
    const struct process_slot *slot = program_slot(s);
    // Relaxed: as requested, and a hint.
    return now_ms < FIRST_SNAPSHOT_MS && slot != NULL &&
           atomic_load_explicit(&slot->exit_wait, memory_order_relaxed) == EXIT_WAIT_WANTED &&
           atomic_load_explicit(&slot->exit_ms, memory_order_relaxed) == 0;
}

void recorder_snapshots_round(struct recorder_state *s, uint64_t now_ms)
{
    judge(s, now_ms);
    const bool waits = is_waiting(s, now_ms);
    const bool has_new =
        s->aggregator.processes.len > s->sampled_processes && now_ms >= s->newcomers_ms;
    const bool is_owed = s->owes_snapshot && now_ms >= FIRST_SNAPSHOT_MS;
    const bool is_due = waits || has_new || is_owed || proc_sampler_due(&s->sampler, now_ms);
    if (!is_due && !proc_sampler_glance_due(&s->sampler, now_ms)) {
        return;
    }
    uint64_t rss_bytes = glance_at_all(s, now_ms);
    if (!is_due && !memory_snapshots_are_due(&s->memory_snapshots, now_ms, rss_bytes)) {
        return;
    }
    proc_sampler_begin_round(&s->sampler, now_ms);
    const struct expense expense = expense_begin();
    rss_bytes = sample_all(s, now_ms, waits);
    const uint64_t spent_ns = expense_ns(&expense);
    s->sampled_processes = s->aggregator.processes.len;
    if (rss_bytes > 0) { // else no process was running
        s->newcomers_ms = now_ms + NEWCOMERS_MS + spent_ns / 10000;
    }
    proc_sampler_end_round(&s->sampler, now_ms, spent_ns);
    s->owes_snapshot = !waits && may_wait(s, now_ms);
    if (waits || (rss_bytes > 0 && !s->owes_snapshot &&
                  memory_snapshots_are_due(&s->memory_snapshots, now_ms, rss_bytes))) {
        // Without memory for this one, the next is tried; samples continue.
        (void)take_snapshots(s, now_ms, waits ? REC_SNAPSHOT_AT_EXIT : 0, false);
    }
    if (waits) {
        let_go(program_slot(s));
    }
}
