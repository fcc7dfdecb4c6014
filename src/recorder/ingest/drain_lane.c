// SPDX-License-Identifier: MIT
#include "recorder/ingest/drain_lane.h"

#include "base/hash.h"
#include "base/minmax.h"
#include "recorder/ingest/drain_books.h"
#include "recorder/ingest/drain_process.h"
#include "recorder/lanes/lane_counters.h"
#include "recorder/session/book_reader.h"

enum {
    LOOK_MS = 200,       // interval of the looks at a thread without events
    REST_AFTER_MS = 100, // without anything of its thread
};

void drain_lane_distrust(struct drain *drain, struct drain_lane *lane)
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

enum err
drain_lane_run(struct drain *drain, struct drain_lane *lane, uint64_t last_stamp, uint64_t clock_ms)
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
    drain_lane_distrust(drain, lane);
    return ERR_OK;
}

bool drain_lane_note_unsampled(struct drain *drain, struct drain_lane *lane)
{
    return lane_counters_take(&lane->reader, drain->aggregator, drain->clock_ms) == ERR_OK;
}

enum err drain_lane_take(struct drain *drain, struct drain_lane *lane, bool is_alive)
{
    struct lane_reader *reader = &lane->reader;
    enum err err = lane_consumer_refresh(&reader->consumer);
    if (err == ERR_OK) {
        reader->taken_pos = reader->consumer.write_pos;
        if (is_alive) {
            drain_books_send_part(drain, reader->consumer.lane);
        }
        err = book_reader_take(reader->consumer.lane, is_alive, &reader->taken);
    }
    if (err != ERR_CORRUPT) {
        return err;
    }
    drain_lane_distrust(drain, lane);
    return ERR_OK;
}

bool drain_lane_is_deserted(const struct drain *drain, const struct drain_lane *lane)
{
    // Acquire: pairs with the release in lane_producer_close.
    return drain->processes[lane->process].is_dead || lane->is_done ||
           atomic_load_explicit(&lane->reader.consumer.lane->state, memory_order_acquire) ==
               LANE_CLOSED;
}

enum err drain_lane_relieve(struct drain *drain, struct drain_lane *lane, bool is_last)
{
    struct lane_header *header = lane->reader.consumer.lane;
    if (lane->reader.taken.len > 0) {
        return ERR_OK; // what was taken before is still uncounted
    }
    lane->unsent_since_ms = UINT64_MAX;
    if (lane->is_corrupt || lane->is_relieved) {
        return ERR_OK;
    }
    lane->unsent_since_ms = book_reader_unsent_since(header);
    if (is_last || drain_lane_is_deserted(drain, lane)) {
        lane->is_relieved = true;
        return drain_lane_take(drain, lane, false);
    }
    if (lane->unsent_since_ms != UINT64_MAX && book_reader_lock(header, drain->stable_ms)) {
        const enum err err = drain_lane_take(drain, lane, true);
        book_reader_unlock(header);
        return err;
    }
    return ERR_OK;
}

bool drain_lane_is_in_hook(const struct drain_lane *lane)
{
    // Acquire: pairs with the thread's release of its guard; its hook's stores are complete.
    return atomic_load_explicit(lane_guard(lane->reader.consumer.lane), memory_order_acquire) != 0;
}

static bool keeps_book(const struct drain_lane *lane)
{
    return *(const volatile uint32_t *)&lane->reader.consumer.lane->keeps_book != 0;
}

bool drain_lane_has_book(const struct drain_lane *lane)
{
    return book_reader_has_counted(lane->reader.consumer.lane);
}

bool drain_lane_is_in_event(const struct drain_lane *lane)
{
    struct lane_header *header = lane->reader.consumer.lane;
    // Acquire: pairs with the thread's releases before it slept, and with record_no_deferred.
    return atomic_load_explicit(&header->unsent_of_handlers, memory_order_acquire) != 0 ||
           lane->reader.taken.len > 0 || lane_reader_has_unread(&lane->reader) ||
           atomic_load_explicit(&header->producer_waiting, memory_order_acquire) != 0 ||
           atomic_load_explicit(&header->write_pos, memory_order_acquire) !=
               lane->reader.consumer.write_pos;
}

void drain_lane_look(struct drain *drain, struct drain_lane *lane, uint32_t *looks_left)
{
    const struct drain_process *process = drain->processes + lane->process;
    const uint64_t due_ms = max_u64(lane->look_ms, lane->reader.thread.tick_ms + LOOK_MS);
    if (*looks_left == 0 || due_ms > drain->clock_ms || lane->is_corrupt || process->is_dead ||
        !process->is_our_namespace || drain->active_count == 1 || keeps_book(lane)) {
        return;
    }
    *looks_left -= 1;
    lane->look_ms = drain->clock_ms + LOOK_MS;
    const uint64_t stamp = session_stamp(drain->session);
    if (drain_process_thread_sleeps(process, (pid_t)lane->reader.thread.thread_id) &&
        !drain_lane_is_in_event(lane)) {
        aggregator_thread_rests(drain->aggregator, &lane->reader.thread, stamp);
    }
}

void drain_lane_note_unsent(struct drain *drain, struct drain_lane *lane)
{
    if (lane_reader_has_unread(&lane->reader)) {
        lane->unsent_since_ms = min_u64(lane->unsent_since_ms, lane->reader.thread.tick_ms);
    }
    if (lane->unsent_since_ms != UINT64_MAX) {
        aggregator_add_hold(drain->aggregator, lane->unsent_since_ms);
    }
}

bool drain_lane_may_rest(const struct drain *drain, struct drain_lane *lane)
{
    const bool is_idle = lane->unsent_since_ms == UINT64_MAX && lane->reader.taken.len == 0 &&
                         lane->reader.query.number == 0 && !lane_reader_has_unread(&lane->reader);
    lane->busy_ms = is_idle ? lane->busy_ms : drain->clock_ms;
    return keeps_book(lane) && !lane->is_corrupt && !drain_lane_is_deserted(drain, lane) &&
           drain->clock_ms >= lane->busy_ms + REST_AFTER_MS;
}

bool drain_lane_is_finished(struct drain *drain, struct drain_lane *lane)
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
        return false; // what was taken of its book earlier was uncounted when this pass began
    }
    // Records written after the snapshot are for the next pass.
    if (lane_consumer_refresh(&lane->reader.consumer) != ERR_OK) {
        drain_lane_distrust(drain, lane);
        return true;
    }
    return !lane_reader_has_unread(&lane->reader);
}
