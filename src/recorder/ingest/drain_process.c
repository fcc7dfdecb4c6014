// SPDX-License-Identifier: MIT
#include "recorder/ingest/drain_process.h"

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "aggregate/books/aggregator_book.h"
#include "base/minmax.h"
#include "host/memory/memory_limit.h"
#include "host/os/proc_file.h"
#include "recorder/ingest/drain_books.h"
#include "recorder/ingest/drain_image.h"
#include "recorder/ingest/drain_lanes.h"
#include "recorder/ingest/drain_time.h"
#include "recorder/processes/pid_lookup.h"

enum {
    DEATHS_AT_ONCE = 64,
    SLOT_SCAN_MS = 10, // interval of the scans of all process slots
};

// Note that the process is dead. Its time of death is read later: see drain_process_date_dead.
static void find_dead(struct drain *drain, uint32_t slot)
{
    struct drain_process *process = drain->processes + slot;
    if (!process->is_dead) {
        process->is_found_dead = true;
        drain->has_found_dead = true;
    }
}

// The process was found alive by a look that began at that time and after that peak.
static void note_alive(struct drain_process *process, uint64_t now_ms, uint32_t peak_number)
{
    if (!process->is_dead) {
        process->alive_ms = now_ms;
        process->alive_number = peak_number;
    }
}

// Date the death of the image that the process had last: by its note, or its last sign of life.
static void date_death(struct drain *drain, uint32_t slot, uint64_t clock_ms)
{
    struct drain_process *process = drain->processes + slot;
    const uint64_t now_ms = drain_process_now_ms(drain, clock_ms); // a time in the future is false
    // Relaxed: its writer is dead.
    const uint64_t exit_ms = atomic_load_explicit(
        &session_process(drain->session->memory, slot)->exit_ms, memory_order_relaxed);
    // At its start the clock may still be 0, for which processes write 1.
    process->is_dated = exit_ms != 0 && exit_ms <= max_u64(now_ms, 1);
    process->end_ms =
        max_u64(process->end_ms, min_u64(process->is_dated ? exit_ms : process->alive_ms,
                                         process->is_dated ? now_ms : clock_ms));
    process->dead_ms = now_ms;
}

static void mark_dead(struct drain *drain, uint32_t slot, uint64_t clock_ms)
{
    struct drain_process *process = drain->processes + slot;
    if (process->other_image_ms != 0) { // it is not the recorded image that has died
        process->aggregator->record.flags |= REC_PROCESS_EXECED;
        process->end_ms = max_u64(process->end_ms, process->image_ms);
        process->dead_ms = process->other_image_ms;
    } else {
        date_death(drain, slot, clock_ms);
    }
    process->is_dead = true;
    drain->has_dead = true;
}

void drain_process_date_dead(struct drain *drain, uint64_t clock_ms)
{
    if (!drain->has_found_dead) {
        return;
    }
    drain->has_found_dead = false;
    for (uint32_t slot = 0; slot < drain->slot_count; slot++) {
        if (drain->processes[slot].is_found_dead) {
            drain->processes[slot].is_found_dead = false;
            mark_dead(drain, slot, clock_ms);
        }
    }
}

static void watch(struct drain *drain, uint32_t slot)
{
    struct drain_process *process = drain->processes + slot;
    if (process->pid <= 0 || process->pid == drain->own_pid) { // the slot was overwritten
        find_dead(drain, slot);
        return;
    }
    process->pidfd = (int)syscall(SYS_pidfd_open, process->pid, 0);
    if (process->pidfd < 0) {
        if (errno == ESRCH) {
            find_dead(drain, slot);
        }
        return;
    }
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = slot};
    if (epoll_ctl(drain->epoll, EPOLL_CTL_ADD, process->pidfd, &event) != 0) {
        (void)close(process->pidfd);
        process->pidfd = -1;
    }
}

// Return the pid by which the recording names the process: ours, or its own if ours is unknown.
static uint32_t name_of(const struct drain_process *process)
{
    return process->pid > 0 ? (uint32_t)process->pid : process->inner_pid;
}

// Return our pid of a process of another namespace; 0: it has ended, or its namespace is not known.
static pid_t pid_in_ours(const struct drain *drain, const struct drain_process *process)
{
    const struct inner_pid inner = {process->inner_pid, process->pid_namespace};
    const pid_t pid = awaited_processes_pid(&drain->awaited, inner);
    return pid != 0 || inner.pid_namespace == 0 ? pid : pid_lookup(inner.pid, inner.pid_namespace);
}

// Return the identity of the slot's process, and its parent's pid. A process of another namespace
// names its parent by a pid of that namespace, or not at all. A process without /proc does not know
// its namespace; it is found by the memory that it shares with the recorder, because its pid may be
// that of an unrelated process in our namespace.
static struct drain_process
identify(const struct drain *drain, const struct process_slot *shared, uint32_t *out_parent_pid)
{
    struct drain_process process = {.pid = (pid_t)shared->pid,
                                    .inner_pid = shared->pid,
                                    .pid_namespace = shared->pid_namespace,
                                    .pidfd = -1,
                                    .first_look = drain->looks};
    if (process.pid_namespace == 0 && drain->session->pid_namespace != 0) {
        process.pid_namespace = pid_lookup_namespace(process.inner_pid, drain->session->memfd);
    }
    const uint32_t inner_parent_pid = shared->parent_pid;
    process.is_our_namespace = process.pid_namespace == drain->session->pid_namespace;
    *out_parent_pid = inner_parent_pid;
    if (process.is_our_namespace) {
        return process;
    }
    process.pid = pid_in_ours(drain, &process);
    *out_parent_pid = process.pid > 0 ? (uint32_t)proc_file_parent(process.pid) : 0;
    for (uint32_t i = 0; i < drain->slot_count; i++) {
        const struct drain_process *other = drain->processes + i;
        if (other->aggregator != NULL && other->inner_pid == inner_parent_pid &&
            (other->pid_namespace == process.pid_namespace || process.pid_namespace == 0)) {
            *out_parent_pid = name_of(other); // its heap is inherited if it was forked
        }
    }
    return process;
}

static uint32_t rec_flags(const struct drain *drain, uint32_t flags, pid_t pid)
{
    return ((flags & PROCESS_FORKED) != 0 ? REC_PROCESS_FORKED : 0) |
           ((flags & PROCESS_OWN_ALLOCATOR) != 0 ? REC_PROCESS_OWN_ALLOCATOR : 0) |
           ((flags & PROCESS_GO) != 0 ? REC_PROCESS_GO : 0) |
           ((flags & PROCESS_ATTACHED) != 0 ? REC_PROCESS_ATTACHED : 0) |
           (pid == drain->main_pid ? REC_PROCESS_MAIN : 0);
}

// Return whether the slot is filled in and new.
static bool is_new(const struct drain *drain, uint32_t slot)
{
    // Acquire: pairs with the release of PROCESS_ACTIVE; the other fields are final.
    const uint32_t state = atomic_load_explicit(
        &session_process(drain->session->memory, slot)->state, memory_order_acquire);
    return drain->processes[slot].aggregator == NULL &&
           (state == PROCESS_ACTIVE || state == PROCESS_REFUSED);
}

// A process has begun in `slot`.
static void note_company(struct drain *drain, uint32_t slot)
{
    drain->process_count++;
    drain->processes[slot].has_company = drain->process_count > 1;
    for (uint32_t i = 0; drain->process_count == 2 && i < drain->slot_count; i++) {
        drain->processes[i].has_company = drain->processes[i].aggregator != NULL;
    }
}

// A forked child has its parent's image. It may execute another program before its first sample.
static void inherit_image(const struct drain *drain,
                          const struct rec_process *record,
                          struct drain_process *out)
{
    for (uint32_t i = 0; i < drain->slot_count && (record->flags & REC_PROCESS_FORKED) != 0; i++) {
        const struct drain_process *parent = drain->processes + i;
        if (parent->aggregator != NULL && (uint32_t)parent->pid == record->parent_pid) {
            out->image = parent->image;
            out->image_ms = record->start_ms;
        }
    }
}

static enum err slot_begin(struct drain *drain, uint32_t slot, uint64_t clock_ms)
{
    const struct process_slot *shared = session_process(drain->session->memory, slot);
    uint32_t parent_pid;
    struct drain_process process = identify(drain, shared, &parent_pid);
    const pid_t pid = process.pid;
    const uint32_t flags = shared->flags;
    const uint64_t start_ms = shared->start_ms;
    const struct drain_image image = {.start_ms = drain_process_time(start_ms, clock_ms),
                                      .is_recorded = true};
    TRY(drain_image_replace(drain, pid, &image, clock_ms));
    const struct rec_process record = {
        .pid = name_of(&process),
        .parent_pid = parent_pid,
        .flags = rec_flags(drain, flags, pid),
        .exit_status = -1,
        .start_ms = min_u64(start_ms, clock_ms),
    };
    if ((record.flags & REC_PROCESS_FORKED) == 0) {
        process.aggregator = awaited_processes_take(&drain->awaited, pid);
    }
    inherit_image(drain, &record, &process);
    if (process.aggregator == NULL) {
        TRY(aggregator_process_begin(drain->aggregator, &record, &process.aggregator));
    }
    process.aggregator->tells_settings = (flags & PROCESS_SETTINGS) != 0;
    process.aggregator->settings = flags >> PROCESS_SETTINGS_SHIFT;
    process.aggregator->join_number = shared->join_number;
    drain->processes[slot] = process;
    drain->slot_count = slot < drain->slot_count ? drain->slot_count : slot + 1;
    drain->main_slot = (record.flags & REC_PROCESS_MAIN) != 0 ? slot : drain->main_slot;
    note_company(drain, slot);
    drain->has_begun = true;
    watch(drain, slot);
    return ERR_OK;
}

// Return whether the slot, or a later one, may be in use. Processes claim the first free one, and
// only the drain frees slots, so there is none behind a free one that was never in use.
static bool may_be_used(const struct drain *drain, uint32_t slot)
{
    // Relaxed: a claim that is not seen yet is found by the next regular scan.
    return slot < drain->slot_count ||
           (slot < SESSION_MAX_PROCESSES &&
            atomic_load_explicit(&session_process(drain->session->memory, slot)->state,
                                 memory_order_relaxed) != PROCESS_FREE);
}

// Return the new slot that joined first, or SESSION_MAX_PROCESSES.
static uint32_t first_new_slot(const struct drain *drain)
{
    uint32_t first = SESSION_MAX_PROCESSES;
    uint64_t first_number = UINT64_MAX;
    for (uint32_t slot = 0; may_be_used(drain, slot); slot++) {
        if (is_new(drain, slot)) {
            const uint64_t number = session_process(drain->session->memory, slot)->join_number;
            if (first == SESSION_MAX_PROCESSES || number < first_number) {
                first = slot;
                first_number = number;
            }
        }
    }
    return first;
}

// Find out whether a process without a pidfd lives.
static void look_at(struct drain *drain, uint32_t slot, uint64_t clock_ms)
{
    struct drain_process *process = drain->processes + slot;
    if (process->aggregator == NULL || process->pidfd >= 0) {
        return;
    }
    const uint32_t number = shared_sum_number(&drain->session->header->sum);
    if (kill(process->pid, 0) != 0 && errno == ESRCH) {
        find_dead(drain, slot);
    } else {
        note_alive(process, clock_ms, number);
    }
}

enum err drain_process_begin_new(struct drain *drain, uint64_t clock_ms)
{
    // Relaxed: only shows that a scan is worthwhile. The next regular scan finds a slot that is
    // counted and not filled in yet; so does the death of a process that may have lived beside it.
    const uint64_t joined =
        atomic_load_explicit(&drain->session->header->join_count, memory_order_relaxed);
    const bool is_due = clock_ms >= drain->next_slot_scan_ms || drain->has_dead;
    if (joined == drain->seen_joins && !is_due) {
        return ERR_OK;
    }
    drain->seen_joins = joined;
    drain->next_slot_scan_ms = clock_ms + SLOT_SCAN_MS;
    for (uint32_t slot; (slot = first_new_slot(drain)) < SESSION_MAX_PROCESSES;) {
        TRY(slot_begin(drain, slot, clock_ms));
    }
    for (uint32_t slot = 0; is_due && slot < drain->slot_count; slot++) {
        look_at(drain, slot, clock_ms);
    }
    return ERR_OK;
}

void drain_find_dead(struct drain *drain)
{
    struct epoll_event events[DEATHS_AT_ONCE];
    const uint64_t now_ms = drain_session_clock_ms(drain);
    const uint32_t number = shared_sum_number(&drain->session->header->sum);
    int count = epoll_wait(drain->epoll, events, DEATHS_AT_ONCE, 0);
    for (int i = 0; i < count; i++) {
        struct drain_process *process = drain->processes + events[i].data.u32;
        if (process->first_look < drain->looks) { // else no look has found it alive
            note_alive(process, drain->looked_ms, drain->looked_number);
        }
        find_dead(drain, events[i].data.u32);
    }
    if (count < DEATHS_AT_ONCE) { // all others live
        drain->looked_ms = now_ms;
        drain->looked_number = number;
        drain->looks++;
    }
}

void drain_find_strangers(struct drain *drain,
                          bool (*may_map)(void *context, pid_t pid),
                          void *context)
{
    for (uint32_t slot = 0; slot < drain->slot_count; slot++) {
        struct drain_process *process = drain->processes + slot;
        const struct aggregator_process *before = process->aggregator;
        if (before == NULL || process->is_dead) {
            continue;
        }
        const uint32_t number = shared_sum_number(&drain->session->header->sum);
        const bool is_ours = process->pid > 0 && may_map(context, process->pid);
        if (process->aggregator != before || process->is_dead) {
            continue; // it has ended meanwhile
        }
        process->strange_checks = is_ours ? 0 : process->strange_checks + 1;
        if (is_ours) {
            note_alive(process, drain->clock_ms, number);
        }
        if (process->strange_checks >= STRANGE_CHECKS_ENOUGH) {
            find_dead(drain, slot);
        }
    }
}

enum err drain_process_end_dead(struct drain *drain)
{
    if (!drain->has_dead) {
        return ERR_OK;
    }
    drain->has_dead = false;
    for (uint32_t slot = 0; slot < drain->slot_count; slot++) {
        const struct drain_process *process = drain->processes + slot;
        if (process->aggregator == NULL || !process->is_dead) {
            continue;
        }
        if (process->lane_count == 0) {
            TRY(drain_image_end(drain, slot));
        } else {
            drain->has_dead = true;
        }
    }
    return ERR_OK;
}
