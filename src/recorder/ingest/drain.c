// SPDX-License-Identifier: MIT
// drain: see the header. This file has the pass; drain_lanes.c has the list of lanes; drain_lane.c
// and drain_process.c have the steps of one lane and of one process.
#include "recorder/ingest/drain.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "aggregate/stack_pruning.h"
#include "base/minmax.h"
#include "recorder/ingest/drain_books.h"
#include "recorder/ingest/drain_image.h"
#include "recorder/ingest/drain_lane.h"
#include "recorder/ingest/drain_lanes.h"
#include "recorder/ingest/drain_process.h"
#include "recorder/ingest/drain_time.h"
#include "recorder/session/claimed_counter.h"
#include "session/stats_query_values.h"

enum {
    STABLE_NS = 1000000,
    THREAD_CHECK_MS = 1000, // interval of the checks whether the lanes' threads still live
    CHECKS_MAX = 64,        // of them, in a pass
    FULL_PASS_MS = 16,      // at most, between two passes that look at each lane
    CALM_MS = 20,           // without events: all passes look at each lane
    GIVEN_BACK_MAX = 16,    // lanes, in a pass that has found events
};

enum err drain_init(struct drain *drain,
                    const struct session *session,
                    struct aggregator *aggregator,
                    struct err_info *info)
{
    drain->session = session;
    drain->aggregator = aggregator;
    drain->main_slot = SESSION_MAX_PROCESSES;
    drain->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (drain->epoll < 0) {
        return err_set_errno(info, errno, "cannot watch processes");
    }
    return ERR_OK;
}

void drain_release(struct drain *drain)
{
    drain_lanes_release(drain);
    for (uint32_t i = 0; i < drain->slot_count; i++) {
        drain_image_forget(drain, i);
    }
    awaited_process_vec_release(&drain->awaited);
    if (drain->epoll > 0) {
        (void)close(drain->epoll);
    }
    drain->epoll = -1;
}

uint64_t drain_events(const struct drain *drain)
{
    uint64_t events = drain->ended_events;
    for (uint32_t i = 0; i < drain->active_count; i++) {
        events += drain->lanes[drain->active[i]]->reader.events;
    }
    return events;
}

uint64_t drain_changes_of(const struct drain *drain, uint32_t slot)
{
    uint64_t changes = slot < SESSION_MAX_PROCESSES ? drain->processes[slot].ended_changes : 0;
    for (uint32_t i = 0; i < drain->active_count; i++) {
        const struct drain_lane *lane = drain->lanes[drain->active[i]];
        changes += lane->process == slot ? lane->reader.events : 0;
    }
    return changes;
}

enum err drain_merge_stacks(struct drain *drain)
{
    CLEANUP(stack_slots_vec_release) struct stack_slots_vec lanes = {0};
    for (uint32_t i = 0; i < drain->active_count; i++) {
        struct lane_dictionary *dictionary = &drain->lanes[drain->active[i]]->reader.dictionary;
        TRY(stack_slots_vec_push(&lanes, (struct stack_slots){.nodes = &dictionary->nodes}));
    }
    for (uint32_t slot = 0; slot < drain->slot_count; slot++) {
        struct aggregator_process *process = drain->processes[slot].aggregator;
        if (process != NULL && process->book_nodes.len > 0) {
            TRY(stack_slots_vec_push(&lanes, (struct stack_slots){.nodes = &process->book_nodes,
                                                                  .rows = &process->book_rows}));
        }
    }
    TRY(stack_pruning_run(drain->aggregator, &lanes));
    // Relaxed: threads only compare it.
    (void)atomic_fetch_add_explicit(&drain->session->header->stack_losses, 1, memory_order_relaxed);
    return ERR_OK;
}

// Return how many of the active lanes this pass looks at.
static uint32_t lanes_of_pass(const struct drain *drain)
{
    return drain->is_full ? drain->active_count : drain->awake_count;
}

// Decide whether this pass looks at each lane.
static void choose_lanes(struct drain *drain, uint32_t ended, bool is_last)
{
    // Relaxed: what threads published before is seen as late as without the hint, at most.
    const uint32_t wake =
        atomic_load_explicit(&drain->session->header->recorder_wake, memory_order_relaxed);
    const bool has_news = wake != drain->full_wake || ended != drain->full_ended ||
                          drain->has_begun || drain->has_unknown || drain->has_dead ||
                          drain->has_found_dead || drain->has_queries;
    drain->is_full = has_news || is_last || drain->clock_ms >= drain->busy_ms + CALM_MS ||
                     drain->clock_ms >= drain->full_ms + FULL_PASS_MS;
    if (drain->is_full) {
        drain->full_ms = drain->clock_ms;
        drain->full_wake = wake;
        drain->full_ended = ended;
        drain->read_ms = drain->stable_ms;
    }
}

// After a full pass: sort the lanes into those that are awake and those that rest.
static void part_lanes(struct drain *drain, bool is_busy)
{
    if (!drain->is_full) {
        return;
    }
    drain->awake_count = 0;
    uint32_t left = is_busy ? GIVEN_BACK_MAX : SESSION_MAX_LANES;
    for (uint32_t i = 0; i < drain->active_count; i++) {
        const uint32_t index = drain->active[i];
        struct drain_lane *lane = drain->lanes[index];
        if (!drain_lane_may_rest(drain, lane)) {
            drain->active[i] = drain->active[drain->awake_count];
            drain->active[drain->awake_count++] = index;
        } else if (drain->gives_back && !lane->has_given_back && left > 0) {
            lane->has_given_back = drain_lane_give_back(drain, lane);
            left -= lane->has_given_back;
        }
    }
}

// Read how far each lane has been written. Return whether any has unread records.
static bool snapshot_lanes(struct drain *drain)
{
    bool has_unread = false;
    for (uint32_t i = 0; i < lanes_of_pass(drain); i++) {
        struct drain_lane *lane = drain->lanes[drain->active[i]];
        lane->reader.consumer.gives_back = drain->gives_back;
        // What comes after its book was taken has been counted with the book.
        const bool is_read =
            lane->is_relieved || lane_consumer_refresh(&lane->reader.consumer) == ERR_OK;
        if (lane->is_corrupt || !is_read || !drain_lane_note_unsampled(drain, lane)) {
            drain_lane_distrust(drain, lane);
        }
        if (lane_reader_has_unread(&lane->reader)) {
            lane->busy_ms = drain->clock_ms;
            has_unread = true;
        }
    }
    return has_unread;
}

// Take what threads will not send themselves, and note how far each lane has been written.
static enum err begin_round(struct drain *drain, bool is_last, bool *has_unread)
{
    for (uint32_t i = 0; i < lanes_of_pass(drain); i++) {
        TRY(drain_lane_relieve(drain, drain->lanes[drain->active[i]], is_last));
    }
    *has_unread = snapshot_lanes(drain);
    return ERR_OK;
}

bool drain_has_counted(const struct drain *drain, uint32_t slot)
{
    for (uint32_t i = 0; i < drain->active_count; i++) {
        const struct drain_lane *lane = drain->lanes[drain->active[i]];
        if (lane->process == slot && (drain_lane_has_book(lane) || drain_lane_is_in_event(lane))) {
            return false;
        }
    }
    return true;
}

bool drain_is_quiet(const struct drain *drain)
{
    bool is_quiet =
        drain->is_full && !drain->has_unknown && !drain->has_found_dead && !drain->has_dead;
    for (uint32_t i = 0; i < drain->active_count && is_quiet; i++) {
        const struct drain_lane *lane = drain->lanes[drain->active[i]];
        is_quiet = lane->is_corrupt ||
                   (lane->unsent_since_ms == UINT64_MAX && !drain_lane_is_in_hook(lane) &&
                    !drain_lane_is_in_event(lane) && !drain_lane_is_deserted(drain, lane));
    }
    return is_quiet;
}

bool drain_has_confined(const struct drain *drain)
{
    for (uint32_t slot = 0; slot < drain->slot_count; slot++) {
        const uint32_t flags = session_process(drain->session->memory, slot)->flags;
        if (drain->processes[slot].aggregator != NULL && (flags & PROCESS_CONFINED) != 0) {
            return true;
        }
    }
    return false;
}

void drain_note_time(struct drain *drain, uint64_t clock_ms, uint64_t monotonic_ns)
{
    if (monotonic_ns - drain->noted_at_ns >= STABLE_NS) {
        drain->stable_ms = drain->noted_ms;
        drain->noted_ms = clock_ms;
        drain->noted_at_ns = monotonic_ns;
    }
}

static MUST_USE enum err end_finished_lanes(struct drain *drain)
{
    for (uint32_t i = 0; i < lanes_of_pass(drain);) {
        if (drain_lane_is_finished(drain, drain->lanes[drain->active[i]])) {
            TRY(drain_lanes_end(drain, i));
        } else {
            i++;
        }
    }
    return ERR_OK;
}

// Return the tick up to which all events are counted at the end of a pass that began like this. It
// is before all that threads have counted and not sent.
static uint64_t complete_tick_of_pass(const struct drain *drain)
{
    uint64_t beyond_ms = drain->active_count == 1 ? UINT64_MAX : drain->read_ms;
    for (uint32_t i = 0; i < lanes_of_pass(drain) && drain->active_count > 1; i++) {
        beyond_ms = min_u64(beyond_ms, drain->lanes[drain->active[i]]->unsent_since_ms);
    }
    return beyond_ms == 0 ? 0 : beyond_ms - 1;
}

// Count what the snapshot has of all lanes, and end the lanes and processes that are over.
static enum err read_lanes(struct drain *drain)
{
    for (uint32_t i = 0; i < lanes_of_pass(drain); i++) {
        TRY(drain_lane_run(drain, drain->lanes[drain->active[i]], drain->clock_ms));
    }
    TRY(end_finished_lanes(drain));
    return drain_process_end_dead(drain);
}

static uint32_t count_ended_lanes(const struct drain *drain)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < lanes_of_pass(drain); i++) {
        count += drain_lane_is_deserted(drain, drain->lanes[drain->active[i]]);
    }
    return count;
}

// Return whether the thread exists. Only for processes in our own pid namespace.
static bool has_thread(const struct drain_process *process, pid_t thread_id)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d", (int)process->pid, (int)thread_id);
    if (access(path, F_OK) == 0) {
        return true;
    }
    // Without its process a missing thread proves nothing: leave that to the pidfd.
    (void)snprintf(path, sizeof(path), "/proc/%d/task", (int)process->pid);
    return access(path, F_OK) != 0;
}

static void check_thread(const struct drain *drain, struct drain_lane *lane)
{
    const struct drain_process *process = drain->processes + lane->process;
    if (!lane->is_done && process->is_our_namespace && !process->is_dead) {
        lane->is_done = !has_thread(process, (pid_t)lane->reader.thread.thread_id);
    }
}

// Find threads that ended without closing their lanes: by a raw system call, or because another
// thread executed a program. A pass checks some of them, since each check takes a system call.
static void check_threads(struct drain *drain)
{
    drain->checked_lanes = (uint32_t)min_u64(drain->checked_lanes, drain->active_count);
    const bool is_due = drain->clock_ms >= drain->next_thread_check_ms ||
                        drain->active_count > drain->checked_lanes + LANES_UNREAD_MAX / 2;
    if (is_due && drain->checks_left == 0) {
        drain->next_thread_check_ms = drain->clock_ms + THREAD_CHECK_MS;
        drain->checks_left = drain->active_count;
        drain->checked_lanes = drain->active_count;
    }
    drain->checks_left = (uint32_t)min_u64(drain->checks_left, drain->active_count);
    for (uint32_t i = 0; i < CHECKS_MAX && drain->checks_left > 0; i++) {
        check_thread(drain, drain->lanes[drain->active[--drain->checks_left]]);
    }
}

// Find new processes and lanes, and the dead among all known processes.
static enum err find_newcomers(struct drain *drain, uint64_t clock_ms)
{
    drain_process_date_dead(drain, clock_ms);
    drain->has_begun = false;
    for (int round = 0; round < 2; round++) {
        drain->has_unknown = false;
        TRY(drain_process_begin_new(drain, clock_ms));
        TRY(drain_lanes_find(drain, DRAIN_ANY_SLOT, clock_ms));
        if (!drain->has_unknown) {
            break;
        }
        drain->next_slot_scan_ms = 0; // the slot was counted before it was filled in
    }
    if (drain->has_begun) { // lanes may have come and gone
        TRY(drain_lanes_name_children(drain, clock_ms));
        drain_find_dead(drain);
        // A process may have claimed a lane and died since the first look. Its lane must be found
        // before its slot is given back: later it would count for the slot's next process.
        TRY(drain_lanes_find(drain, DRAIN_ANY_SLOT, clock_ms));
        drain_process_date_dead(drain, clock_ms);
    }
    return ERR_OK;
}

// Note the session's counters, which all processes may write.
static void note_counters(struct drain *drain)
{
    const uint64_t most = claimed_counter_most(drain->clock_ms);
    for (size_t i = 0; i < SESSION_COUNTER_COUNT; i++) {
        // Relaxed: counters order nothing.
        const uint64_t now =
            atomic_load_explicit(&drain->session->header->counters[i], memory_order_relaxed);
        uint64_t *known = &drain->known_counters[i];
        if (!claimed_counter_take(now, most, known, &drain->counters[i])) {
            drain->corrupt_counters++;
            *known = now; // later growth counts again
        }
    }
}

static void query_add_row(uint64_t sums[static ANSWER_VALUES], const struct rec_row *row)
{
    sums[ANSWER_ALLOCATIONS] += row->allocations;
    sums[ANSWER_ALLOCATED_BYTES] += row->allocated_bytes;
    sums[ANSWER_FREES] += row->frees;
    sums[ANSWER_FREED_BYTES] += row->freed_bytes;
    sums[ANSWER_TEMPORARY] += row->temporary;
}

// Return the sums of the thread, or of its process.
static void query_totals(const struct aggregator *aggregator,
                         const struct aggregator_thread *thread,
                         bool is_process,
                         uint64_t sums[static ANSWER_VALUES])
{
    const struct rec_thread *threads = aggregator->threads.threads.items;
    for (size_t i = 0; i < aggregator->totals.rows.rows.len; i++) {
        const struct rec_row *row = aggregator->totals.rows.rows.items + i;
        if (is_process ? threads[row->thread].process == thread->process->index
                       : row->thread == thread->entry) {
            query_add_row(sums, row);
        }
    }
}

static MUST_USE enum err query_values(struct aggregator *aggregator,
                                      struct lane_reader *reader,
                                      uint64_t values[static ANSWER_VALUES])
{
    const struct lane_query *query = &reader->query;
    if (query->what == STATS_QUERY_PEAK) {
        values[ANSWER_PEAK_BYTES] =
            aggregator_scope_peak(aggregator, &reader->thread, query->scope);
        return ERR_OK;
    }
    if (query->what == STATS_QUERY_PEAK_BEGIN && query->scope < LANE_SCOPES_MAX) {
        TRY(aggregator_begin_scope(aggregator, &reader->thread, query->scope));
        return ERR_OK;
    }
    query_totals(aggregator, &reader->thread, query->what != STATS_QUERY_THREAD, values);
    return ERR_OK;
}

static enum err answer_query(struct aggregator *aggregator, struct lane_reader *reader)
{
    struct lane_answer *out = &reader->consumer.lane->answer;
    uint64_t values[ANSWER_VALUES] = {0};
    TRY(query_values(aggregator, reader, values));
    for (uint32_t i = 0; i < ANSWER_VALUES; i++) {
        atomic_store_explicit(&out->values[i], values[i], memory_order_relaxed);
    }
    // Release: pairs with the thread's acquire; the values come first.
    atomic_store_explicit(&out->answered, reader->query.number, memory_order_release);
    // A failure to wake is harmless: its sleep has a deadline.
    (void)syscall(SYS_futex, &out->answered, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    reader->query = (struct lane_query){0};
    return ERR_OK;
}

// Answer queries at the end of a pass (target/preload/process/stats_query.h). The aggregator has
// all events up to complete_tick. The latest query of a lane waits for a whole pass after the one
// that read it, and until all lanes have been counted up to the time at which it was read. The
// aggregator then has all events before the query, of any thread. Lanes that this pass left out
// have none.
static MUST_USE enum err answer_queries(struct drain *drain, uint64_t complete_tick)
{
    const uint64_t now_ms = drain_process_now_ms(drain, drain->clock_ms);
    drain->has_queries = false; // that still wait
    for (uint32_t i = 0; i < lanes_of_pass(drain); i++) {
        struct lane_reader *reader = &drain->lanes[drain->active[i]]->reader;
        if (reader->query.number == 0) {
            continue;
        }
        if (reader->query.passes == 0) {
            // Another thread may have counted before the query, and have read a later time.
            reader->query.tick_ms = max_u64(reader->query.tick_ms, now_ms);
        }
        if (reader->query.passes++ > 0 && reader->query.tick_ms <= complete_tick) {
            TRY(answer_query(drain->aggregator, reader));
        } else {
            drain->has_queries = true;
        }
    }
    return ERR_OK;
}

enum err drain_pass(struct drain *drain, uint64_t clock_ms, bool is_last, bool *out_was_busy)
{
    drain->clock_ms = clock_ms;
    drain->passes++;
    // Relaxed: it guards no other data. Before the lanes' states, so that none is counted twice.
    const uint32_t ended =
        atomic_load_explicit(&drain->session->header->ended_lanes, memory_order_relaxed);
    note_counters(drain);
    TRY(find_newcomers(drain, clock_ms));
    check_threads(drain);
    choose_lanes(drain, ended, is_last);
    drain->gives_back =
        memory_budget_gives_lanes_back(&drain->aggregator->budget, drain->active_count);
    bool has_unread = false;
    TRY(begin_round(drain, is_last, &has_unread));
    const uint64_t complete_tick = complete_tick_of_pass(drain);
    TRY(read_lanes(drain));
    TRY(drain_books_end_pass(drain));
    session_note_unread(drain->session, ended - count_ended_lanes(drain));
    TRY(answer_queries(drain, complete_tick));
    part_lanes(drain, has_unread);
    *out_was_busy = has_unread || drain->has_queries;
    drain->busy_ms = *out_was_busy ? clock_ms : drain->busy_ms;
    return ERR_OK;
}
