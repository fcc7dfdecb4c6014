// SPDX-License-Identifier: MIT
// aggregator_time: advances the aggregator (aggregator.h) from tick to tick. It gives up pending
// frees that have waited too long, and collects what threads hold back.
// Context: H, one thread.
// Failure: ERR_NO_MEMORY.
#include "aggregate/aggregator.h"
#include "aggregate/aggregator_sampling.h"
#include "base/minmax.h"

void aggregator_expire_frees(struct aggregator *aggregator,
                             struct aggregator_process *process,
                             uint64_t now_tick)
{
    if (process->pending.count == 0) {
        return;
    }
    // A thread that has had no time to send may hold the missing allocation.
    const bool is_held =
        aggregator->held_since_ms < UINT64_MAX - PENDING_TICKS && now_tick != UINT64_MAX;
    const uint64_t held_until = is_held ? aggregator->held_since_ms + PENDING_TICKS : now_tick;
    uint64_t expired =
        pending_frees_expire(&process->pending, held_until < now_tick ? held_until : now_tick);
    aggregator_count_unknown(aggregator, process, expired);
    aggregator->pending_count -= expired;
}

static void expire_pending(struct aggregator *aggregator, uint64_t now_tick)
{
    for (size_t i = 0; i < aggregator->processes.len && aggregator->pending_count > 0; i++) {
        aggregator_expire_frees(aggregator, aggregator->processes.items[i], now_tick);
    }
}

void aggregator_seal(struct aggregator *aggregator)
{
    expire_pending(aggregator, UINT64_MAX); // of processes that still run
    map_u64_release(&aggregator->stacks.module_index);
    id_index_release(&aggregator->stacks.frame_index);
    id_index_release(&aggregator->stacks.node_index);
    id_index_release(&aggregator->totals.rows.index);
    u32_vec_release(&aggregator->totals.rows.latest_of_nodes);
}

enum err aggregator_tick(struct aggregator *aggregator, uint64_t tick_ms)
{
    if (tick_ms <= aggregator->totals.now_ms) {
        return ERR_OK;
    }
    if (UNLIKELY(aggregator->pending_count > 0)) {
        expire_pending(aggregator, tick_ms);
    }
    return heap_totals_advance(&aggregator->totals, tick_ms);
}

enum err aggregator_extend(struct aggregator *aggregator, uint64_t end_ms)
{
    // A slice that begins at the very end would be empty.
    return end_ms > 0 ? heap_totals_extend(&aggregator->totals, end_ms - 1) : ERR_OK;
}

void aggregator_clear_holds(struct aggregator *aggregator)
{
    aggregator->held_since_ms = UINT64_MAX;
}

void aggregator_add_hold(struct aggregator *aggregator, uint64_t since_ms)
{
    aggregator->held_since_ms = min_u64(aggregator->held_since_ms, since_ms);
}
