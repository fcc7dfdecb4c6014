// SPDX-License-Identifier: MIT
#include "recorder/ingest/drain_image.h"

#include <sys/epoll.h>
#include <unistd.h>

#include "aggregate/aggregator_process.h"
#include "aggregate/books/aggregator_book.h"
#include "base/minmax.h"
#include "host/memory/memory_limit.h"
#include "recorder/ingest/drain_books.h"
#include "recorder/ingest/drain_lanes.h"
#include "recorder/ingest/drain_time.h"

void drain_image_forget(struct drain *drain, uint32_t slot)
{
    struct drain_process *process = drain->processes + slot;
    if (process->aggregator == NULL) {
        return;
    }
    if (process->pidfd >= 0) {
        // Explicitly: close alone leaves it in the set while a checkpoint's writer has a copy, and
        // the slot's next process would count as dead (epoll(7)). It is in the set, so this cannot
        // fail.
        (void)epoll_ctl(drain->epoll, EPOLL_CTL_DEL, process->pidfd, NULL);
        (void)close(process->pidfd);
    }
    given_rows_release(&process->given);
    *process = (struct drain_process){.pidfd = -1};
    drain->process_count--;
}

// Note whether the dead process was killed: it neither noted its exit nor executed another program.
static void note_killed(const struct drain *drain, uint32_t slot)
{
    const struct drain_process *process = drain->processes + slot;
    struct rec_process *record = &process->aggregator->record;
    const uint32_t flags = session_process(drain->session->memory, slot)->flags;
    const bool was_found = process->pid > 0 && process->strange_checks < STRANGE_CHECKS_ENOUGH;
    const bool has_left = process->is_dated || (record->flags & REC_PROCESS_EXECED) != 0;
    if ((flags & PROCESS_NOTES_EXIT) != 0 && was_found && !has_left) {
        record->flags |= REC_PROCESS_KILLED;
        record->killed_threads = process->killed_threads;
    }
}

// Return how much later than `end_ms` the process may have ended.
static uint64_t
end_error_ms(const struct drain *drain, const struct drain_process *process, uint64_t end_ms)
{
    if (process->is_dated) {
        return drain->clock != NULL ? session_clock_error_ms(drain->clock, end_ms) : 0;
    }
    return excess_u64(process->dead_ms, end_ms);
}

// Samples miss the peak of a short life. The process itself noted the kernel's figure as it exited,
// unless a false one stands there: a program may overwrite it.
static void note_peak(const struct drain *drain, uint32_t slot)
{
    const struct process_notes *notes = session_notes(drain->session->memory, slot);
    // Relaxed: their writer is dead.
    const uint64_t joined_kib = atomic_load_explicit(&notes->joined_rss_kib, memory_order_relaxed);
    const uint64_t exit_kib = atomic_load_explicit(&notes->exit_rss_kib, memory_order_relaxed);
    struct rec_process *record = &drain->processes[slot].aggregator->record;
    const uint64_t exit_bytes = exit_kib << 10;
    // Only a process that maps the same pages several times has more than the machine: its samples
    // tell.
    if (exit_kib > joined_kib && exit_bytes >> 10 == exit_kib &&
        exit_bytes <= memory_of_machine()) {
        record->peak_rss_bytes = max_u64(record->peak_rss_bytes, exit_bytes);
    }
}

enum err drain_image_end(struct drain *drain, uint32_t slot)
{
    const struct drain_process *process = drain->processes + slot;
    note_killed(drain, slot);
    note_peak(drain, slot);
    const uint64_t end_ms = max_u64(process->end_ms, process->aggregator->record.start_ms);
    const struct aggregator_process_ending ending = {
        .end_ms = end_ms, .error_ms = end_error_ms(drain, process, end_ms)};
    TRY(aggregator_book_settle(drain->aggregator, process->aggregator));
    TRY(drain_books_end_process(drain, slot));
    const uint32_t number = words_process_number(process->aggregator->join_number);
    TRY(aggregator_process_end(drain->aggregator, process->aggregator, &ending));
    drain_books_ended_process(drain, process->aggregator);
    session_wipe_words(drain->session, number);
    drain_image_forget(drain, slot);
    struct process_slot *shared = session_process(drain->session->memory, slot);
    // Release: pairs with the acquire of the next claim of the slot.
    atomic_store_explicit(&shared->state, PROCESS_FREE, memory_order_release);
    return ERR_OK;
}

// The process of `slot` continues as another image: its earlier heap ended when that began.
static enum err
replace_image(struct drain *drain, uint32_t slot, const struct drain_image *next, uint64_t clock_ms)
{
    struct drain_process *process = drain->processes + slot;
    process->aggregator->record.flags |= REC_PROCESS_EXECED;
    process->has_next_image = next->is_recorded;
    process->is_dated = next->later_ms == 0;
    process->dead_ms = next->later_ms;
    process->end_ms = next->start_ms;
    TRY(drain_lanes_end_image(drain, slot, clock_ms));
    process->end_ms = process->is_dated ? next->start_ms : max_u64(process->end_ms, next->start_ms);
    return drain_image_end(drain, slot);
}

enum err drain_image_replace(struct drain *drain,
                             pid_t pid,
                             const struct drain_image *next,
                             uint64_t clock_ms)
{
    for (uint32_t slot = 0; slot < drain->slot_count; slot++) {
        const struct drain_process *process = drain->processes + slot;
        if (pid > 0 && process->aggregator != NULL && process->pid == pid) {
            TRY(replace_image(drain, slot, next, clock_ms));
        }
    }
    return ERR_OK;
}

enum err drain_end_silent(struct drain *drain, uint32_t slot, uint64_t clock_ms)
{
    const struct drain_process *process = drain->processes + slot;
    const struct drain_image next = {.start_ms = process->image_ms,
                                     .later_ms = process->other_image_ms};
    return replace_image(drain, slot, &next, clock_ms);
}

// Return the slot of the image that had joined before the exec; SESSION_MAX_PROCESSES: none.
static uint32_t replaceable_slot(const struct drain *drain, const struct drain_replacement *exec)
{
    const uint32_t *index =
        exec->pid > 0 ? map_u64_find(&drain->aggregator->last_of_pid, (uint64_t)exec->pid) : NULL;
    if (index == NULL || drain->aggregator->processes.items[*index]->is_ended) {
        return SESSION_MAX_PROCESSES;
    }
    for (uint32_t slot = 0; slot < drain->slot_count; slot++) {
        const struct drain_process *process = drain->processes + slot;
        if (process->aggregator != NULL && process->pid == exec->pid && !process->is_dead &&
            process->aggregator->join_number < exec->joins) {
            return slot;
        }
    }
    return SESSION_MAX_PROCESSES;
}

// Return whether the process has an image from before the note that has not joined, because it has
// not allocated yet.
static bool has_awaited(const struct drain *drain, const struct drain_replacement *exec)
{
    const struct aggregator_process *process =
        exec->pid > 0 ? awaited_processes_find(&drain->awaited, exec->pid) : NULL;
    return process != NULL && process->record.start_ms <= exec->time_ms;
}

bool drain_has_replaceable(const struct drain *drain, const struct drain_replacement *exec)
{
    return replaceable_slot(drain, exec) != SESSION_MAX_PROCESSES || has_awaited(drain, exec);
}

static enum err end_awaited(struct drain *drain, pid_t pid, const struct drain_image *next)
{
    struct aggregator_process *process = awaited_processes_take(&drain->awaited, pid);
    const struct aggregator_process_ending ending = {.end_ms = next->start_ms};
    process->record.flags |= REC_PROCESS_EXECED;
    return aggregator_process_end(drain->aggregator, process, &ending);
}

enum err
drain_end_replaced(struct drain *drain, const struct drain_replacement *exec, uint64_t clock_ms)
{
    const struct drain_image next = {.start_ms = drain_process_time(exec->time_ms, clock_ms)};
    if (has_awaited(drain, exec)) {
        TRY(end_awaited(drain, exec->pid, &next));
    }
    return replaceable_slot(drain, exec) != SESSION_MAX_PROCESSES
               ? drain_image_replace(drain, exec->pid, &next, clock_ms)
               : ERR_OK;
}
