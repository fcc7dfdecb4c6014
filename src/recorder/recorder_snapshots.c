// SPDX-License-Identifier: MIT
#include "recorder/recorder_snapshots.h"

#include <limits.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/futex.h>

#include "base/compiler.h"
#include "recorder/recorder_breakdown.h"

enum {
    FIRST_SNAPSHOT_MS = 10,
    NEWCOMERS_MS = 10, // a process that has just joined is sampled soon
};

enum err recorder_snapshots_now(struct recorder_state *s, uint64_t now_ms)
{
    return recorder_breakdown_take(s, now_ms, 0, true);
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

// Ask the main program to wait, if it has just been read.
static void ask_main(const struct recorder_state *s, bool is_confined)
{
    struct process_slot *slot = program_slot(s);
    const struct drain_process *process =
        slot != NULL ? s->drain.processes + s->drain.main_slot : NULL;
    if (process != NULL && process->aggregator != NULL && !process->is_dead &&
        !process->aggregator->is_unread) {
        ask_to_wait(slot, is_confined);
    }
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
    const struct expense expense = expense_begin(s);
    CLEANUP(living_process_vec_release) struct living_process_vec living = {0};
    (void)!recorder_living(s, &living); // without memory the curve has a gap
    for (size_t i = 0; i < living.len; i++) {
        const struct living_process *one = living.items + i;
        proc_sampler_glance(&s->sampler, one->pid, one->process, now_ms);
    }
    return proc_sampler_end_glances(&s->sampler, now_ms, expense_ns(s, &expense));
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
    recorder_breakdown_judge(s, now_ms);
    const bool waits = is_waiting(s, now_ms);
    const bool has_new =
        s->aggregator.processes.len > s->sampled_processes && now_ms >= s->newcomers_ms;
    const bool is_owed = s->owes_snapshot && now_ms >= FIRST_SNAPSHOT_MS;
    bool is_due = waits || has_new || is_owed || proc_sampler_due(&s->sampler, now_ms);
    if (!is_due && !proc_sampler_glance_due(&s->sampler, now_ms)) {
        return;
    }
    uint64_t rss_bytes = glance_at_all(s, now_ms);
    is_due = is_due || proc_sampler_due(&s->sampler, now_ms);
    if (!is_due && !memory_snapshots_are_due(&s->memory_snapshots, now_ms, rss_bytes)) {
        return;
    }
    proc_sampler_begin_round(&s->sampler, now_ms);
    struct expense expense = expense_begin(s);
    bool is_confined = false; // the main program
    rss_bytes = recorder_sample_all(s, now_ms, waits, &is_confined, &expense.aside_ns);
    ask_main(s, is_confined);
    const uint64_t spent_ns = expense_ns(s, &expense);
    s->sampled_processes = s->aggregator.processes.len;
    if (rss_bytes > 0) { // else no process was running
        s->newcomers_ms = now_ms + NEWCOMERS_MS + spent_ns / 10000;
    }
    proc_sampler_end_round(&s->sampler, now_ms, spent_ns);
    s->owes_snapshot = !waits && may_wait(s, now_ms);
    if (waits || (rss_bytes > 0 && !s->owes_snapshot &&
                  memory_snapshots_are_due(&s->memory_snapshots, now_ms, rss_bytes))) {
        // Without memory for this one, the next is tried; samples continue.
        (void)!recorder_breakdown_take(s, now_ms, waits ? REC_SNAPSHOT_AT_EXIT : 0, false);
    }
    if (waits) {
        let_go(program_slot(s));
    }
}
