// SPDX-License-Identifier: MIT
#include "recorder/ingest/drain_image.h"

#include "aggregate/aggregator_process.h"
#include "base/minmax.h"
#include "recorder/ingest/drain_lanes.h"
#include "recorder/ingest/drain_process.h"
#include "recorder/ingest/drain_time.h"

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
    return drain_process_end(drain, slot);
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

// Return the image that has not joined, because it has not allocated yet; NULL: there is none.
static struct aggregator_process *replaceable_awaited(const struct drain *drain,
                                                      const struct drain_replacement *exec)
{
    struct aggregator_process *found = NULL;
    for (size_t i = 0; i < drain->awaited.len; i++) {
        struct aggregator_process *process = drain->awaited.items[i].process;
        if (exec->pid > 0 && process->record.pid == (uint32_t)exec->pid &&
            process->record.start_ms <= exec->time_ms) {
            found = process;
        }
    }
    return found;
}

bool drain_has_replaceable(const struct drain *drain, const struct drain_replacement *exec)
{
    return replaceable_slot(drain, exec) != SESSION_MAX_PROCESSES ||
           replaceable_awaited(drain, exec) != NULL;
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
    if (replaceable_awaited(drain, exec) != NULL) {
        TRY(end_awaited(drain, exec->pid, &next));
    }
    return replaceable_slot(drain, exec) != SESSION_MAX_PROCESSES
               ? drain_image_replace(drain, exec->pid, &next, clock_ms)
               : ERR_OK;
}
