// SPDX-License-Identifier: MIT
// drain: see the header. This file has the pass; drain_lane.c and drain_process.c have the steps of
// one lane and of one process.
#include "recorder/ingest/drain.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "aggregate/stack_pruning.h"
#include "base/minmax.h"
#include "recorder/ingest/drain_books.h"
#include "recorder/ingest/drain_lane.h"
#include "recorder/ingest/drain_names.h"
#include "recorder/ingest/drain_process.h"
#include "recorder/ingest/drain_queries.h"
#include "recorder/ingest/drain_time.h"
#include "recorder/session/claimed_counter.h"

enum {
    ANY_SLOT = SESSION_MAX_PROCESSES,
    STABLE_NS = 1000000,
    THREAD_CHECK_MS = 1000, // interval of the checks whether the lanes' threads still live
    CHECKS_MAX = 64,        // of them, in a pass
    FULL_PASS_MS = 16,      // at most, between two passes that look at each lane
    CALM_MS = 20,           // without events: all passes look at each lane
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

static void lane_free(struct drain *drain, uint32_t lane)
{
    lane_reader_release(&drain->lanes[lane]->reader);
    free(drain->lanes[lane]);
    drain->lanes[lane] = NULL;
}

void drain_release(struct drain *drain)
{
    for (uint32_t i = 0; i < drain->active_count; i++) {
        lane_free(drain, drain->active[i]);
    }
    drain->active_count = 0;
    for (uint32_t i = 0; i < drain->slot_count; i++) {
        drain_process_forget(drain, i);
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

// Begin to read a lane whose bit is set.
static enum err lane_begin(struct drain *drain, uint32_t index, uint64_t clock_ms)
{
    struct lane_header *header = session_lane(drain->session->memory, index);
    // Acquire: pairs with the release in session_claim_lane; the owner's fields are final.
    if (atomic_load_explicit(&header->state, memory_order_acquire) == LANE_FREE) {
        return ERR_OK; // claimed, not filled in yet
    }
    const uint32_t slot = header->process_index;
    if (slot >= SESSION_MAX_PROCESSES || drain->processes[slot].aggregator == NULL) {
        drain->has_unknown = true; // its process has not begun yet, or the lane is false
        return ERR_OK;
    }
    struct drain_process *process = drain->processes + slot;
    struct drain_lane *lane = calloc(1, sizeof(*lane));
    if (lane == NULL) {
        return ERR_NO_MEMORY;
    }
    lane->process = slot;
    lane_reader_init(&lane->reader, header, index, process->aggregator, header->thread_id,
                     drain_process_time(header->start_ms, clock_ms));
    lane->busy_ms = drain->clock_ms;
    drain->lanes[index] = lane;
    drain->active[drain->active_count] = drain->active[drain->awake_count];
    drain->active[drain->awake_count++] = index;
    drain->active_count++;
    process->lane_count++;
    return ERR_OK;
}

// Remove active[i].
static void remove_active(struct drain *drain, uint32_t i)
{
    if (i < drain->awake_count) { // the last one that is awake takes its place
        drain->active[i] = drain->active[--drain->awake_count];
        i = drain->awake_count;
    }
    drain->active[i] = drain->active[--drain->active_count];
}

// Begin the new lanes that are in use, of one slot or of all (ANY_SLOT).
enum err drain_find_lanes(struct drain *drain, uint32_t slot, uint64_t clock_ms)
{
    for (uint32_t word = 0; word < SESSION_MAX_LANES / 64; word++) {
        // Relaxed: lane_begin acquires what it needs from the lane itself.
        uint64_t used =
            atomic_load_explicit(&drain->session->header->lane_bitmap[word], memory_order_relaxed);
        for (; used != 0; used &= used - 1) {
            uint32_t index = word * 64 + (uint32_t)__builtin_ctzll(used);
            const struct lane_header *header = session_lane(drain->session->memory, index);
            if (drain->lanes[index] == NULL &&
                (slot == ANY_SLOT || slot == header->process_index)) {
                TRY(lane_begin(drain, index, clock_ms));
            }
        }
    }
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
static void part_lanes(struct drain *drain)
{
    if (!drain->is_full) {
        return;
    }
    drain->awake_count = 0;
    for (uint32_t i = 0; i < drain->active_count; i++) {
        const uint32_t index = drain->active[i];
        if (!drain_lane_may_rest(drain, drain->lanes[index])) {
            drain->active[i] = drain->active[drain->awake_count];
            drain->active[drain->awake_count++] = index;
        }
    }
}

// Read how far each lane has been written. Return whether any has unread records.
static bool snapshot_lanes(struct drain *drain)
{
    bool has_unread = false;
    for (uint32_t i = 0; i < lanes_of_pass(drain); i++) {
        struct drain_lane *lane = drain->lanes[drain->active[i]];
        if (lane->is_corrupt || lane_consumer_refresh(&lane->reader.consumer) != ERR_OK ||
            !drain_lane_note_unsampled(drain, lane)) {
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

// Return when a thread that is found ended has ended: with its process, or by now.
static uint64_t end_of_thread(const struct drain *drain, const struct drain_process *process)
{
    const bool has_end = process->is_dead || process->is_dated;
    return has_end ? process->end_ms : max_u64(drain->clock_ms, process->end_ms);
}

// Recycle lane active[i].
static MUST_USE enum err lane_end(struct drain *drain, uint32_t i)
{
    const uint32_t index = drain->active[i];
    struct drain_lane *lane = drain->lanes[index];
    drain->ended_events += lane->reader.events;
    if (!lane->is_corrupt && !drain_lane_note_unsampled(drain, lane)) {
        drain_lane_distrust(drain, lane);
    }
    struct drain_process *process = drain->processes + lane->process;
    process->end_ms = max_u64(process->end_ms, lane->reader.thread.tick_ms);
    aggregator_thread_end(drain->aggregator, &lane->reader.thread, end_of_thread(drain, process));
    process->lane_count--;
    process->ended_changes += lane->reader.events;
    // Relaxed: its writer is dead.
    process->killed_threads +=
        process->is_dead && atomic_load_explicit(&lane->reader.consumer.lane->state,
                                                 memory_order_relaxed) != LANE_CLOSED;
    if (!process->is_dead && !lane->is_corrupt) {
        TRY(lane_reader_leave_rows(&lane->reader, drain->aggregator));
    }
    drain_books_end_lane(drain, lane->reader.consumer.lane);
    lane_free(drain, index);
    remove_active(drain, i);
    session_recycle_lane(drain->session, index);
    return ERR_OK;
}

static MUST_USE enum err end_finished_lanes(struct drain *drain)
{
    for (uint32_t i = 0; i < lanes_of_pass(drain);) {
        if (drain_lane_is_finished(drain, drain->lanes[drain->active[i]])) {
            TRY(lane_end(drain, i));
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

static void check_thread(const struct drain *drain, struct drain_lane *lane)
{
    const struct drain_process *process = drain->processes + lane->process;
    if (!lane->is_done && process->is_our_namespace && !process->is_dead) {
        lane->is_done = !drain_process_has_thread(process, (pid_t)lane->reader.thread.thread_id);
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

enum err drain_image(struct drain *drain, uint32_t slot, uint64_t clock_ms)
{
    TRY(drain_find_lanes(drain, slot, clock_ms)); // it may have begun and ended since the last pass
    TRY(drain_names_learn_of(drain, slot, clock_ms));
    for (uint32_t i = 0; i < drain->active_count;) {
        struct drain_lane *lane = drain->lanes[drain->active[i]];
        if (lane->process != slot) {
            i++;
            continue;
        }
        if (!lane->is_corrupt) {
            TRY(drain_lane_take(drain, lane, false));
        }
        if (!lane->is_corrupt) {
            TRY(drain_lane_run(drain, lane, clock_ms));
        }
        TRY(lane_end(drain, i));
    }
    return ERR_OK;
}

// Find new processes and lanes, and the dead among all known processes.
static enum err find_newcomers(struct drain *drain, uint64_t clock_ms)
{
    drain_process_date_dead(drain, clock_ms);
    drain->has_begun = false;
    for (int round = 0; round < 2; round++) {
        drain->has_unknown = false;
        TRY(drain_process_begin_new(drain, clock_ms));
        TRY(drain_find_lanes(drain, ANY_SLOT, clock_ms));
        if (!drain->has_unknown) {
            break;
        }
        drain->next_slot_scan_ms = 0; // the slot was counted before it was filled in
    }
    if (drain->has_begun) { // lanes may have come and gone
        TRY(drain_names_learn(drain, clock_ms));
        drain_process_find_dead(drain);
        // A process may have claimed a lane and died since the first look. Its lane must be found
        // before its slot is given back: later it would count for the slot's next process.
        TRY(drain_find_lanes(drain, ANY_SLOT, clock_ms));
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
    bool has_unread = false;
    TRY(begin_round(drain, is_last, &has_unread));
    const uint64_t complete_tick = complete_tick_of_pass(drain);
    TRY(read_lanes(drain));
    if (is_last) { // and what threads have sent meanwhile
        bool has_more = false;
        TRY(begin_round(drain, true, &has_more));
        TRY(read_lanes(drain));
    }
    TRY(drain_books_end_pass(drain));
    session_note_unread(drain->session, ended - count_ended_lanes(drain));
    TRY(drain_queries_answer(drain, lanes_of_pass(drain), complete_tick,
                             drain_process_now_ms(drain, clock_ms), &drain->has_queries));
    part_lanes(drain);
    *out_was_busy = has_unread || drain->has_queries;
    drain->busy_ms = *out_was_busy ? clock_ms : drain->busy_ms;
    return ERR_OK;
}
