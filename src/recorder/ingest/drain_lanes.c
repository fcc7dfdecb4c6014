// SPDX-License-Identifier: MIT
#include "recorder/ingest/drain_lanes.h"

#include <stdlib.h>

#include "base/minmax.h"
#include "recorder/ingest/drain_books.h"
#include "recorder/ingest/drain_lane.h"
#include "recorder/ingest/drain_time.h"

static void lane_free(struct drain *drain, uint32_t lane)
{
    lane_reader_release(&drain->lanes[lane]->reader);
    free(drain->lanes[lane]);
    drain->lanes[lane] = NULL;
}

void drain_lanes_release(struct drain *drain)
{
    for (uint32_t i = 0; i < drain->active_count; i++) {
        lane_free(drain, drain->active[i]);
    }
    drain->active_count = 0;
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

enum err drain_lanes_find(struct drain *drain, uint32_t slot, uint64_t clock_ms)
{
    for (uint32_t word = 0; word < SESSION_MAX_LANES / 64; word++) {
        // Relaxed: lane_begin acquires what it needs from the lane itself.
        uint64_t used =
            atomic_load_explicit(&drain->session->header->lane_bitmap[word], memory_order_relaxed);
        for (; used != 0; used &= used - 1) {
            uint32_t index = word * 64 + (uint32_t)__builtin_ctzll(used);
            const struct lane_header *header = session_lane(drain->session->memory, index);
            if (drain->lanes[index] == NULL &&
                (slot == DRAIN_ANY_SLOT || slot == header->process_index)) {
                TRY(lane_begin(drain, index, clock_ms));
            }
        }
    }
    return ERR_OK;
}

// Return when a thread that is found ended has ended: with its process, or by now.
static uint64_t end_of_thread(const struct drain *drain, const struct drain_process *process)
{
    const bool has_end = process->is_dead || process->is_dated;
    return has_end ? process->end_ms : max_u64(drain->clock_ms, process->end_ms);
}

enum err drain_lanes_end(struct drain *drain, uint32_t i)
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

static bool is_nameless_child(const struct drain_process *process)
{
    return process->aggregator != NULL && process->aggregator->record.executable == 0 &&
           (process->aggregator->record.flags & REC_PROCESS_FORKED) != 0;
}

// Return the slot of a process, or SESSION_MAX_PROCESSES if it has none any more.
static uint32_t slot_of(const struct drain *drain, const struct aggregator_process *process)
{
    uint32_t slot = 0;
    while (slot < drain->slot_count && drain->processes[slot].aggregator != process) {
        slot++;
    }
    return slot < drain->slot_count ? slot : SESSION_MAX_PROCESSES;
}

// Search the unread records of the lanes of `slot`.
static enum err peek_lanes(struct drain *drain, uint32_t slot, uint64_t clock_ms)
{
    TRY(drain_lanes_find(drain, slot, clock_ms));
    const struct aggregator_process *process = drain->processes[slot].aggregator;
    for (uint32_t i = 0; i < drain->active_count && process->record.executable == 0; i++) {
        struct drain_lane *lane = drain->lanes[drain->active[i]];
        if (lane->process == slot && !lane->is_corrupt) {
            TRY(lane_reader_peek_executable(&lane->reader, drain->aggregator));
        }
    }
    return ERR_OK;
}

static MUST_USE enum err name_child(struct drain *drain, uint32_t slot, uint64_t clock_ms)
{
    struct drain_process *child = drain->processes + slot;
    if (!is_nameless_child(child)) {
        return ERR_OK;
    }
    const struct aggregator_process *origin =
        aggregator_process_origin(drain->aggregator, child->aggregator);
    const uint32_t origin_slot = slot_of(drain, origin);
    if (origin->record.executable == 0 && origin_slot < SESSION_MAX_PROCESSES) {
        TRY(peek_lanes(drain, origin_slot, clock_ms));
    }
    aggregator_process_inherit(drain->aggregator, child->aggregator);
    return ERR_OK;
}

enum err drain_lanes_name_children(struct drain *drain, uint64_t clock_ms)
{
    for (uint32_t slot = 0; slot < drain->slot_count; slot++) {
        TRY(name_child(drain, slot, clock_ms));
    }
    return ERR_OK;
}

enum err drain_lanes_end_image(struct drain *drain, uint32_t slot, uint64_t clock_ms)
{
    TRY(drain_lanes_find(drain, slot, clock_ms)); // it may have begun and ended since the last pass
    TRY(name_child(drain, slot, clock_ms));
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
        TRY(drain_lanes_end(drain, i));
    }
    return ERR_OK;
}
