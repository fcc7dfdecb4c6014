// SPDX-License-Identifier: MIT
// drain: see the header. This file has the pass and the lanes; drain_process.c has the processes.
#include "recorder/ingest/drain.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "aggregate/stack_pruning.h"
#include "base/hash.h"
#include "base/minmax.h"
#include "recorder/ingest/drain_names.h"
#include "recorder/ingest/drain_process.h"
#include "recorder/ingest/drain_queries.h"
#include "recorder/lanes/lane_counters.h"
#include "recorder/session/claimed_counter.h"

enum {
    ANY_SLOT = SESSION_MAX_PROCESSES,
    STABLE_NS = 1000000,
    LOOK_MS = 200,          // interval of the looks at a thread without events
    LOOKS_MAX = 16,         // in a pass
    THREAD_CHECK_MS = 1000, // interval of the checks whether the lanes' threads still live
};

enum err drain_init(struct drain *drain,
                    const struct session *session,
                    struct aggregator *aggregator,
                    struct err_info *info)
{
    drain->session = session;
    drain->aggregator = aggregator;
    drain->pending_stamp = UINT64_MAX;
    drain->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (drain->epoll < 0) {
        return err_set_errno(info, errno, "cannot watch processes");
    }
    drain->scratch = malloc(sizeof(*drain->scratch));
    if (drain->scratch == NULL) {
        drain_release(drain);
        return ERR_NO_MEMORY;
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
    aggregator_process_vec_release(&drain->awaited);
    free(drain->scratch);
    drain->scratch = NULL;
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

enum err drain_merge_stacks(struct drain *drain)
{
    CLEANUP(stack_slots_vec_release) struct stack_slots_vec lanes = {0};
    for (uint32_t i = 0; i < drain->active_count; i++) {
        struct lane_reader *reader = &drain->lanes[drain->active[i]]->reader;
        TRY(stack_slots_vec_push(
            &lanes, (struct stack_slots){.nodes = &reader->nodes, .rows = &reader->rows}));
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
    drain->lanes[index] = lane;
    drain->active[drain->active_count++] = index;
    process->lane_count++;
    return ERR_OK;
}

// Begin the new lanes that are in use, of one slot or of all (ANY_SLOT).
static enum err find_lanes(struct drain *drain, uint32_t slot, uint64_t clock_ms)
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

enum err drain_find_lanes(struct drain *drain, uint32_t slot, uint64_t clock_ms)
{
    return find_lanes(drain, slot, clock_ms);
}

static void lane_distrust(struct drain *drain, struct drain_lane *lane)
{
    if (!lane->is_corrupt) {
        lane->is_corrupt = true;
        drain->corrupt_lanes++;
    }
    lane_reader_discard(&lane->reader);
}

// Return the latest time that the lane's thread can have seen. A dead thread has seen none since
// its death.
static uint64_t
latest_ms_of(const struct drain *drain, const struct drain_lane *lane, uint64_t clock_ms)
{
    const struct drain_process *process = drain->processes + lane->process;
    return process->is_dead ? process->dead_ms : clock_ms + DRAIN_TIME_SLACK_MS;
}

// Return the place of the stack of the lane's thread in `stacks`.
static struct drain_stack *stack_of(struct drain *drain, const struct drain_lane *lane)
{
    const uint64_t process = lane->reader.thread.process->index;
    return drain->stacks + hash_mix(lane->self_address ^ hash_mix(process)) % DRAIN_STACKS;
}

// Date the beginning of a thread when its first event with a stamp is next: the previous thread
// with its stack had ended by then, and its events have been counted.
static void date_thread(struct drain *drain, struct drain_lane *lane)
{
    lane->self_address = lane->reader.consumer.lane->self_address; // written before the event
    lane->is_dated = true;
    const struct drain_stack *stack = stack_of(drain, lane);
    struct aggregator_thread *thread = &lane->reader.thread;
    if (lane->self_address == 0 || stack->self_address != lane->self_address ||
        stack->process != thread->process->index) {
        return;
    }
    struct drain_lane *before = drain->lanes[stack->lane];
    if (before != NULL && before->self_address == lane->self_address &&
        before->process == lane->process) {
        peak_bound_landed(&drain->aggregator->bound, &before->reader.thread.flight);
    }
    peak_bound_followed(&drain->aggregator->bound, &thread->flight, &stack->flight);
}

// Read one lane up to last_stamp. An error in the lane is not an error of the drain.
static enum err
lane_run(struct drain *drain, struct drain_lane *lane, uint64_t last_stamp, uint64_t clock_ms)
{
    const struct lane_limits limits = {.time_ms = latest_ms_of(drain, lane, clock_ms),
                                       .stamp = drain->latest_stamp};
    enum err err = ERR_OK;
    if (!lane->is_dated) { // up to the first event with a stamp
        err = lane_reader_run(&lane->reader, drain->aggregator, 0, &limits);
        if (lane->reader.next_stamp != 0 && lane->reader.next_stamp <= last_stamp) {
            date_thread(drain, lane);
        }
    }
    if (err == ERR_OK) {
        err = lane_reader_run(&lane->reader, drain->aggregator, last_stamp, &limits);
    }
    struct drain_stack *stack = stack_of(drain, lane);
    if (lane->is_dated && lane->reader.thread.flight.stamp >= stack->flight.stamp) {
        *stack = (struct drain_stack){.self_address = lane->self_address,
                                      .flight = lane->reader.thread.flight,
                                      .process = lane->reader.thread.process->index,
                                      .lane = lane->reader.thread.lane};
    }
    if (err != ERR_CORRUPT) {
        return err;
    }
    lane_distrust(drain, lane);
    return ERR_OK;
}

static bool lane_note_unsampled(struct drain *drain, struct drain_lane *lane)
{
    return lane_counters_take(&lane->reader, drain->aggregator, drain->clock_ms) == ERR_OK;
}

static bool is_of_earlier_image(const struct drain *drain, const struct drain_lane *lane)
{
    return drain->processes[lane->process].is_replaced;
}

// Read how far each lane has been written; note the unread ones.
static void snapshot_lanes(struct drain *drain)
{
    lane_heap_clear(&drain->unread);
    for (uint32_t i = 0; i < drain->active_count; i++) {
        struct drain_lane *lane = drain->lanes[drain->active[i]];
        const bool is_sound = !lane->is_corrupt &&
                              lane_consumer_refresh(&lane->reader.consumer) == ERR_OK &&
                              lane_note_unsampled(drain, lane);
        if (!is_sound) {
            lane_distrust(drain, lane);
        } else if (lane_reader_has_unread(&lane->reader)) {
            lane_heap_add(&drain->unread,
                          (struct lane_turn){.stamp = lane->reader.next_stamp,
                                             .lane = drain->active[i],
                                             .is_earlier = is_of_earlier_image(drain, lane)});
        }
    }
}

// Return the stamp at which the contents of the lane's nursery are due. A live thread may be in the
// middle of a realloc: the block that it frees may be one of them, and another thread may have a
// block at its address by now.
static uint64_t late_stamp_of(const struct drain *drain, const struct drain_lane *lane)
{
    uint64_t first = drain->alive_stamp;
    for (uint32_t k = 0; k < LANE_PENDING_STAMPS; k++) {
        // Relaxed: a later one belongs to a realloc that began after alive_stamp.
        const uint64_t pending = atomic_load_explicit(
            &lane->reader.consumer.lane->pending_stamps[k], memory_order_relaxed);
        first = pending != 0 ? min_u64(first, pending) : first;
    }
    return first;
}

// Take the contents of the lane's nursery.
static enum err lane_take(struct drain *drain, struct drain_lane *lane, bool is_alive)
{
    struct lane_reader *reader = &lane->reader;
    enum err err = lane_consumer_refresh(&reader->consumer);
    if (err == ERR_OK) {
        reader->late_pos = reader->consumer.write_pos;
        reader->late_stamp =
            is_alive ? late_stamp_of(drain, lane) : drain->processes[lane->process].end_stamp;
        err = nursery_reader_take(reader->consumer.lane, is_alive, drain->scratch, &reader->late);
    }
    if (err != ERR_CORRUPT) {
        return err;
    }
    lane_distrust(drain, lane);
    return ERR_OK;
}

static bool lane_is_deserted(const struct drain *drain, const struct drain_lane *lane)
{
    // Acquire: pairs with the release in lane_producer_close.
    return drain->processes[lane->process].is_dead || lane->is_done ||
           atomic_load_explicit(&lane->reader.consumer.lane->state, memory_order_acquire) ==
               LANE_CLOSED;
}

// Take the blocks that the thread of `lane` holds, if it will not send them itself in time. Note
// the blocks of all threads that may be uncounted when the pass begins.
static enum err lane_relieve(struct drain *drain, struct drain_lane *lane, bool is_last)
{
    struct lane_header *header = lane->reader.consumer.lane;
    if (lane->reader.late.len > 0) {
        return ERR_OK; // the taken blocks are still uncounted
    }
    lane->hold = (struct nursery_hold){.since_ms = UINT64_MAX};
    if (lane->is_corrupt || lane->is_relieved) {
        return ERR_OK;
    }
    lane->hold = nursery_reader_hold(header);
    if (is_last || lane_is_deserted(drain, lane)) {
        lane->is_relieved = true;
        return lane_take(drain, lane, false);
    }
    if (lane->hold.since_ms != UINT64_MAX && nursery_reader_lock(header, drain->stable_ms)) {
        const enum err err = lane_take(drain, lane, true);
        nursery_reader_unlock(header);
        return err;
    }
    return ERR_OK;
}

// Take what threads will not send themselves, and note how far each lane has been written.
static enum err begin_round(struct drain *drain, bool is_last)
{
    for (uint32_t i = 0; i < drain->active_count; i++) {
        TRY(lane_relieve(drain, drain->lanes[drain->active[i]], is_last));
    }
    snapshot_lanes(drain);
    return ERR_OK;
}

// Whether this pass leaves events to later ones that precede the moment of its start.
static bool leaves_events(const struct drain *drain)
{
    return drain->pending_stamp < drain->alive_stamp;
}

// Whether the thread may be in an event, or has sent some that have not been counted.
static bool is_in_event(const struct drain_lane *lane)
{
    struct lane_header *header = lane->reader.consumer.lane;
    bool is_pending = false;
    for (uint32_t k = 0; k < LANE_PENDING_STAMPS; k++) {
        is_pending |= atomic_load_explicit(&header->pending_stamps[k], memory_order_acquire) != 0;
    }
    // Acquire: pairs with the thread's releases before it slept.
    return is_pending || lane->reader.late.len > 0 || lane_reader_has_unread(&lane->reader) ||
           atomic_load_explicit(&header->producer_waiting, memory_order_acquire) != 0 ||
           atomic_load_explicit(&header->write_pos, memory_order_acquire) !=
               lane->reader.consumer.write_pos;
}

bool drain_has_counted(const struct drain *drain, uint32_t slot)
{
    for (uint32_t i = 0; i < drain->active_count; i++) {
        const struct drain_lane *lane = drain->lanes[drain->active[i]];
        // Relaxed: what the thread sends instead of holding is published before, as in is_in_event.
        const uint64_t held_bytes = atomic_load_explicit(
            &lane->reader.consumer.lane->nursery.held_bytes, memory_order_relaxed);
        if (lane->process == slot && (held_bytes != 0 || is_in_event(lane))) {
            return false;
        }
    }
    return true;
}

// Look now and then whether a thread without events sleeps. *looks_left: in this pass.
static void look_at_thread(struct drain *drain, struct drain_lane *lane, uint32_t *looks_left)
{
    const struct drain_process *process = drain->processes + lane->process;
    const uint64_t due_ms = max_u64(lane->look_ms, lane->reader.thread.tick_ms + LOOK_MS);
    if (*looks_left == 0 || due_ms > drain->clock_ms || lane->is_corrupt || process->is_dead ||
        !process->is_our_namespace || drain->active_count == 1) {
        return;
    }
    *looks_left -= 1;
    lane->look_ms = drain->clock_ms + LOOK_MS;
    const uint64_t stamp = session_stamp(drain->session);
    if (drain_process_thread_sleeps(process, (pid_t)lane->reader.thread.thread_id) &&
        !is_in_event(lane)) {
        aggregator_thread_rests(drain->aggregator, &lane->reader.thread, stamp);
    }
}

// Note the blocks that the lane's thread still holds.
static void note_hold(struct drain *drain, struct drain_lane *lane)
{
    struct lane_header *header = lane->reader.consumer.lane;
    const bool has_unread = lane_reader_has_unread(&lane->reader);
    if (has_unread) { // blocks that were sent late, perhaps
        lane->hold.since_ms = min_u64(lane->hold.since_ms, lane->reader.thread.tick_ms);
    }
    if (lane->hold.since_ms != UINT64_MAX) {
        aggregator_add_hold(drain->aggregator, lane->hold.since_ms, lane->hold.held_bytes);
    }
    hold_budget_add(&drain->budget, &lane->budget, &header->nursery,
                    !has_unread && nursery_reader_is_empty(header, drain->stable_ms));
}

// Note what threads still hold and which threads rest, and set what each may hold from now on.
static void note_threads(struct drain *drain)
{
    struct session_header *header = drain->session->header;
    const bool is_alone = drain->active_count == 1;
    uint32_t looks_left = LOOKS_MAX;
    hold_budget_begin_pass(&drain->budget, leaves_events(drain));
    aggregator_clear_holds(drain->aggregator);
    for (uint32_t i = 0; i < drain->active_count; i++) {
        struct drain_lane *lane = drain->lanes[drain->active[i]];
        note_hold(drain, lane);
        look_at_thread(drain, lane, &looks_left);
    }
    aggregator_end_holds(drain->aggregator, drain->budget.held_at_most_bytes, is_alone);
    hold_budget_end_pass(&drain->budget, drain->aggregator->totals.peak_bytes,
                         (header->flags & SESSION_NO_NURSERY) == 0 && drain->active_count > 1);
    // Relaxed: it orders nothing else.
    atomic_store_explicit(&header->hold_bytes, drain->budget.each_bytes, memory_order_relaxed);
}

void drain_note_time(struct drain *drain, uint64_t clock_ms, uint64_t monotonic_ns)
{
    if (monotonic_ns - drain->noted_at_ns >= STABLE_NS) {
        drain->stable_ms = drain->noted_ms;
        drain->noted_ms = clock_ms;
        drain->noted_at_ns = monotonic_ns;
    }
}

// Return the time before which all ticks are over and all their events published.
static uint64_t complete_ms(const struct drain *drain, uint64_t clock_ms)
{
    const bool is_held_back = (drain->session->header->flags & SESSION_NO_NURSERY) == 0;
    return is_held_back ? drain->stable_ms : clock_ms;
}

// Return the earliest pending stamp of the thread of `lane` that has not been read completely.
// *which: its index.
static uint64_t pending_of(const struct drain_lane *lane, uint32_t *which)
{
    uint64_t first = UINT64_MAX;
    for (uint32_t k = 0; k < LANE_PENDING_STAMPS && !lane->is_corrupt; k++) {
        // Acquire: pairs with the release in record.c; its records are published.
        const uint64_t pending = atomic_load_explicit(
            &lane->reader.consumer.lane->pending_stamps[k], memory_order_acquire);
        if (pending != 0 && pending != lane->given_up[k] && pending < first) {
            first = pending;
            *which = k;
        }
    }
    return first;
}

// Return when the process began to exit, if it has not been found dead since.
static uint64_t exit_of(const struct drain *drain, uint32_t slot)
{
    const struct drain_process *process = drain->processes + slot;
    if (process->aggregator == NULL || process->is_dead || process->is_lingering) {
        return UINT64_MAX;
    }
    const uint64_t stamp = atomic_load_explicit(
        &session_process(drain->session->memory, slot)->exit_stamp, memory_order_relaxed);
    return stamp != 0 ? stamp : UINT64_MAX;
}

// Return the first moment that is not known completely. `is_given_up`: it has been the same for too
// long, and the pass proceeds without it.
static uint64_t first_pending(struct drain *drain, bool is_given_up)
{
    uint64_t first = UINT64_MAX;
    // Relaxed: alive_stamp was read before, and an event before it was sent after this was set.
    const bool is_ordered = atomic_load_explicit(&drain->session->header->order,
                                                 memory_order_relaxed) == SESSION_ORDER_SEVERAL;
    for (uint32_t i = 0; i < drain->active_count && is_ordered; i++) {
        struct drain_lane *lane = drain->lanes[drain->active[i]];
        uint32_t which;
        const uint64_t pending = pending_of(lane, &which);
        if (pending == drain->pending_stamp && is_given_up) {
            lane->given_up[which] = pending;
            continue;
        }
        first = min_u64(first, pending);
    }
    for (uint32_t slot = 0; slot < drain->slot_count && drain->process_count > 1; slot++) {
        const uint64_t exited = exit_of(drain, slot);
        if (exited == drain->pending_stamp && is_given_up) {
            drain->processes[slot].is_lingering = true;
            continue;
        }
        first = min_u64(first, exited);
    }
    return first;
}

// Return the moment up to which this pass counts events; see the header. Call it before lanes are
// read.
static uint64_t limit_of_pass(struct drain *drain, uint64_t clock_ms)
{
    const bool is_given_up = drain->pending_stamp != UINT64_MAX &&
                             clock_ms - drain->pending_since_ms >= drain_patience_ms(drain);
    const uint64_t pending = first_pending(drain, is_given_up);
    if (is_given_up && pending != drain->pending_stamp) {
        // Relaxed: a counter.
        atomic_fetch_add_explicit(&drain->session->header->counters[NOTE_order_timeouts], 1,
                                  memory_order_relaxed);
    }
    if (pending != drain->pending_stamp) {
        drain->pending_stamp = pending;
        drain->pending_since_ms = clock_ms;
    }
    return min_u64(drain->alive_stamp, pending - 1);
}

// Return the latest moment at which a thread that has ended can have done so. Events before it may
// be counted later, in this pass or the next.
static uint64_t latest_end_of(const struct drain *drain, const struct drain_process *process)
{
    if (!process->is_dead) {
        return session_stamp(drain->session);
    }
    return process->end_stamp != 0 ? process->end_stamp : process->death_stamp;
}

// Recycle lane active[i].
static void lane_end(struct drain *drain, uint32_t i)
{
    const uint32_t index = drain->active[i];
    struct drain_lane *lane = drain->lanes[index];
    drain->ended_events += lane->reader.events;
    if (!lane->is_corrupt && !lane_note_unsampled(drain, lane)) {
        lane_distrust(drain, lane);
    }
    struct drain_process *process = drain->processes + lane->process;
    aggregator_thread_end(drain->aggregator, &lane->reader.thread, latest_end_of(drain, process));
    hold_budget_end_thread(&drain->budget, &lane->budget);
    process->lane_count--;
    // Relaxed: its writer is dead.
    process->killed_threads +=
        process->is_dead && atomic_load_explicit(&lane->reader.consumer.lane->state,
                                                 memory_order_relaxed) != LANE_CLOSED;
    if (lane->reader.thread.tick_ms > process->end_ms) {
        process->end_ms = lane->reader.thread.tick_ms;
    }
    lane_free(drain, index);
    drain->active[i] = drain->active[--drain->active_count];
    session_recycle_lane(drain->session, index);
}

static bool lane_is_finished(struct drain *drain, struct drain_lane *lane)
{
    if (!drain->processes[lane->process].is_dead && !lane->is_done) {
        // Acquire: pairs with the release in lane_producer_close; its last records are published.
        uint32_t state =
            atomic_load_explicit(&lane->reader.consumer.lane->state, memory_order_acquire);
        if (state != LANE_CLOSED) {
            return false;
        }
    }
    if (lane->is_corrupt) {
        return true;
    }
    if (!lane->is_relieved) {
        return false; // earlier blocks of its nursery were uncounted when this pass began
    }
    // Records written after the snapshot are for the next pass.
    if (lane_consumer_refresh(&lane->reader.consumer) != ERR_OK) {
        lane_distrust(drain, lane);
        return true;
    }
    return !lane_reader_has_unread(&lane->reader);
}

static void end_finished_lanes(struct drain *drain)
{
    for (uint32_t i = 0; i < drain->active_count;) {
        if (lane_is_finished(drain, drain->lanes[drain->active[i]])) {
            lane_end(drain, i);
        } else {
            i++;
        }
    }
}

// Return the tick up to which all events are counted at the end of a pass that began like this,
// including those that threads still hold.
static uint64_t complete_tick_of_pass(const struct drain *drain, uint64_t clock_ms)
{
    if (leaves_events(drain)) {
        return 0;
    }
    uint64_t beyond_ms = drain->active_count == 1 ? UINT64_MAX : complete_ms(drain, clock_ms);
    for (uint32_t i = 0; i < drain->active_count && drain->active_count > 1; i++) {
        const struct nursery_hold *hold = &drain->lanes[drain->active[i]]->hold;
        beyond_ms = min_u64(beyond_ms, hold->since_ms);
    }
    return beyond_ms == 0 ? 0 : beyond_ms - 1;
}

// Return the lane with the earliest next event; NULL: everything has been read. Events without
// stamps have only this order: events of a process before an exec precede those of its next image.
static struct drain_lane *first_lane(struct drain *drain)
{
    for (; drain->unread.count > 0; lane_heap_drop_first(&drain->unread)) {
        struct drain_lane *lane = drain->lanes[drain->unread.turns[0].lane];
        if (lane != NULL && lane_reader_has_unread(&lane->reader)) {
            return lane;
        }
    }
    return NULL;
}

// End the dead processes whose last sign of life precedes `stamp`, as all counted events do.
static enum err end_before(struct drain *drain, uint64_t stamp)
{
    end_finished_lanes(drain);
    return drain_process_end_dead(drain, stamp);
}

// Count the events of the snapshot in the unread lanes up to last_stamp, in the order of stamps.
// Dead processes end between events: when their lanes have been read, at their exit, and at the
// end.
static enum err merge_lanes(struct drain *drain, uint64_t last_stamp, uint64_t clock_ms)
{
    bool is_over = drain->has_dead; // for some process, perhaps
    for (struct drain_lane *lane; (lane = first_lane(drain)) != NULL;) {
        const uint64_t first = lane->reader.next_stamp;
        if (first > last_stamp) {
            break;
        }
        if (UNLIKELY(drain->has_dead && (is_over || first > drain->next_end_stamp))) {
            TRY(end_before(drain, first));
            is_over = false;
            continue;
        }
        uint64_t until = min_u64(lane_heap_second_stamp(&drain->unread), last_stamp);
        until = drain->has_dead ? min_u64(until, drain->next_end_stamp) : until;
        TRY(lane_run(drain, lane, until, clock_ms));
        if (lane_reader_has_unread(&lane->reader)) {
            lane_heap_move_first(&drain->unread, lane->reader.next_stamp);
        } else {
            lane_heap_drop_first(&drain->unread);
            is_over = drain->processes[lane->process].is_dead;
        }
    }
    return end_before(drain, last_stamp);
}

static uint32_t count_ended_lanes(const struct drain *drain)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < drain->active_count; i++) {
        count += lane_is_deserted(drain, drain->lanes[drain->active[i]]);
    }
    return count;
}

// Find threads that ended without closing their lanes: by a raw system call, or because another
// thread executed a program.
static void check_threads(struct drain *drain)
{
    for (uint32_t i = 0; i < drain->active_count; i++) {
        struct drain_lane *lane = drain->lanes[drain->active[i]];
        const struct drain_process *process = drain->processes + lane->process;
        if (!lane->is_done && process->is_our_namespace && !process->is_dead) {
            lane->is_done =
                !drain_process_has_thread(process, (pid_t)lane->reader.thread.thread_id);
        }
    }
    drain->checked_lanes = drain->active_count;
}

enum err drain_image(struct drain *drain, uint32_t slot, uint64_t clock_ms)
{
    TRY(find_lanes(drain, slot, clock_ms)); // it may have begun and ended since the last pass
    TRY(drain_names_learn_of(drain, slot, clock_ms));
    for (uint32_t i = 0; i < drain->active_count;) {
        struct drain_lane *lane = drain->lanes[drain->active[i]];
        if (lane->process != slot) {
            i++;
            continue;
        }
        if (!lane->is_corrupt && lane->reader.late.len > 0) { // they precede what it holds now
            TRY(lane_run(drain, lane, UINT64_MAX, clock_ms));
        }
        if (!lane->is_corrupt) {
            TRY(lane_take(drain, lane, false));
        }
        if (!lane->is_corrupt) {
            drain->latest_stamp = session_stamp(drain->session);
            TRY(lane_run(drain, lane, UINT64_MAX, clock_ms));
        }
        lane_end(drain, i);
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
        TRY(find_lanes(drain, ANY_SLOT, clock_ms));
        if (!drain->has_unknown) {
            break;
        }
        drain->next_slot_scan_ms = 0; // the slot was counted before it was filled in
    }
    if (drain->has_begun) { // lanes may have come and gone
        TRY(drain_names_learn(drain, clock_ms));
        drain_process_find_dead(drain);
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
    // Relaxed: it guards no other data. Before the lanes' states, so that none is counted twice.
    const uint32_t ended =
        atomic_load_explicit(&drain->session->header->ended_lanes, memory_order_relaxed);
    note_counters(drain);
    TRY(find_newcomers(drain, clock_ms));
    drain->checked_lanes = (uint32_t)min_u64(drain->checked_lanes, drain->active_count);
    if (clock_ms >= drain->next_thread_check_ms ||
        drain->active_count > drain->checked_lanes + LANES_UNREAD_MAX / 2) {
        drain->next_thread_check_ms = clock_ms + THREAD_CHECK_MS;
        check_threads(drain);
    }
    const uint64_t last_stamp = is_last ? UINT64_MAX : limit_of_pass(drain, clock_ms);
    TRY(begin_round(drain, is_last));
    drain->latest_stamp = session_stamp(drain->session);
    const bool has_unread = drain->unread.count > 0;
    const uint64_t complete_tick = complete_tick_of_pass(drain, clock_ms);
    note_threads(drain);
    TRY(merge_lanes(drain, last_stamp, clock_ms));
    if (is_last) { // threads whose earlier blocks were uncounted hold others
        TRY(begin_round(drain, true));
        TRY(merge_lanes(drain, last_stamp, clock_ms));
    }
    session_note_unread(drain->session, ended - count_ended_lanes(drain));
    bool has_queries = false;
    TRY(drain_queries_answer(drain, complete_tick, &has_queries));
    *out_was_busy = has_unread || has_queries;
    return ERR_OK;
}
