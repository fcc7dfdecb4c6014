// SPDX-License-Identifier: MIT
#include "recorder/ingest/drain_names.h"

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
    TRY(drain_find_lanes(drain, slot, clock_ms));
    const struct aggregator_process *process = drain->processes[slot].aggregator;
    for (uint32_t i = 0; i < drain->active_count && process->record.executable == 0; i++) {
        struct drain_lane *lane = drain->lanes[drain->active[i]];
        if (lane->process == slot && !lane->is_corrupt) {
            TRY(lane_reader_peek_executable(&lane->reader, drain->aggregator));
        }
    }
    return ERR_OK;
}

enum err drain_names_learn_of(struct drain *drain, uint32_t slot, uint64_t clock_ms)
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

enum err drain_names_learn(struct drain *drain, uint64_t clock_ms)
{
    for (uint32_t slot = 0; slot < drain->slot_count; slot++) {
        TRY(drain_names_learn_of(drain, slot, clock_ms));
    }
    return ERR_OK;
}
