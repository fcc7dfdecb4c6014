// SPDX-License-Identifier: MIT
#include "recorder/ingest/drain_limit.h"

#include "base/minmax.h"

// Return when the process began to exit, if it has not been found dead since.
static uint64_t exit_of(const struct drain *drain, uint32_t slot)
{
    const struct drain_process *process = drain->processes + slot;
    if (process->aggregator == NULL || process->is_dead || process->is_past_its_exit) {
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
    for (uint32_t slot = 0; slot < drain->slot_count && drain->process_count > 1; slot++) {
        const uint64_t exited = exit_of(drain, slot);
        if (exited == drain->pending_stamp && is_given_up) {
            drain->processes[slot].is_past_its_exit = true;
            continue;
        }
        first = min_u64(first, exited);
    }
    return first;
}

uint64_t drain_limit_of_pass(struct drain *drain, uint64_t clock_ms)
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
