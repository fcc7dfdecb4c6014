// SPDX-License-Identifier: MIT
#include "aggregate/aggregator_sampling.h"

#include "base/minmax.h"

void aggregator_change_unsampled(struct aggregator *aggregator,
                                 struct aggregator_process *process,
                                 const struct unsampled_sums *change)
{
    unsampled_sums_add(&process->unsampled, change);
    unsampled_sums_add(&aggregator->estimate.now, change);
}

void aggregator_count_unknown(struct aggregator *aggregator,
                              struct aggregator_process *process,
                              uint64_t count)
{
    const bool is_forked = (process->record.flags & REC_PROCESS_FORKED) != 0;
    if (aggregator->sampling.unsampled_allocations != 0) {
        aggregator->sampling.unsampled_frees += count;
        const struct unsampled_sums freed = unsampled_sums_freed(&process->unsampled, count);
        aggregator_change_unsampled(aggregator, process, &freed);
        return;
    }
    *(aggregator->stops.len > 0 && !is_forked ? &aggregator->unrecorded_frees
                                              : &aggregator->unknown_frees) += count;
}

static struct live_estimate estimate_of_all(const struct aggregator *aggregator,
                                            uint64_t counted_bytes)
{
    return live_estimate_of(&aggregator->estimate.now, counted_bytes, aggregator->pending_count);
}

uint64_t aggregator_estimate_live(const struct aggregator *aggregator)
{
    return estimate_of_all(aggregator, aggregator->totals.sums.live_bytes).bytes;
}

uint64_t aggregator_estimate_height(struct aggregator *aggregator,
                                    const struct aggregator_process *process,
                                    uint64_t counted_bytes,
                                    uint64_t *own_bytes)
{
    const struct live_estimate live = estimate_of_all(aggregator, counted_bytes);
    peak_estimate_update(&aggregator->estimate, &live, live.bytes > aggregator->totals.peak_bytes);
    *own_bytes = live_estimate_of(&process->unsampled, *own_bytes, process->pending.count).bytes;
    return live.bytes;
}

enum err aggregator_remove_represented(struct aggregator *aggregator,
                                       struct aggregator_process *process,
                                       struct live_block block,
                                       uint64_t lifetime_ms,
                                       uint32_t born_slice)
{
    const uint32_t more = ((uint32_t)1 << block.shift) - 1;
    const uint64_t more_bytes = more * block.size_bytes;
    heap_totals_lower(&aggregator->totals, more, more_bytes);
    process->live_bytes -= more_bytes;
    process->represented_blocks -= more;
    aggregator_change_unsampled(
        aggregator, process,
        &(struct unsampled_sums){.represented_bytes = -more_bytes,
                                 .variance = -peak_estimate_variance(block.size_bytes, more + 1)});
    return row_table_freed_more(&aggregator->totals.rows, block.row, block.size_bytes, lifetime_ms,
                                born_slice, more);
}

enum err aggregator_add_represented(struct aggregator *aggregator,
                                    struct aggregator_process *process,
                                    struct live_block block)
{
    const uint32_t weight = (uint32_t)1 << block.shift;
    struct aggregator_sampling *sampling = &aggregator->sampling;
    process->represented_blocks += weight - 1;
    aggregator->estimate.is_there = true;
    aggregator_change_unsampled(
        aggregator, process,
        &(struct unsampled_sums){.represented_bytes = (weight - 1) * block.size_bytes,
                                 .variance = peak_estimate_variance(block.size_bytes, weight)});
    sampling->sampled_allocations++;
    sampling->represented_allocations += weight - 1;
    sampling->represented_bytes += (weight - 1) * block.size_bytes;
    sampling->max_weight = max_u64(sampling->max_weight, weight);
    return row_table_allocated_more(&aggregator->totals.rows, block.row, block.size_bytes,
                                    weight - 1);
}

enum err aggregator_skip_block(struct aggregator *aggregator,
                               struct aggregator_thread *thread,
                               uint64_t address,
                               uint64_t size_bytes)
{
    struct aggregator_sampling *sampling = &aggregator->sampling;
    sampling->unsampled_allocations++;
    sampling->unsampled_bytes += size_bytes;
    if (pending_frees_take(&thread->process->pending, address, thread->stamp)) {
        aggregator->pending_count--;
        sampling->unsampled_frees++;
    } else {
        aggregator->estimate.is_there = true;
        aggregator_change_unsampled(
            aggregator, thread->process,
            &(struct unsampled_sums){.lost_blocks = 1, .lost_bytes = size_bytes});
    }
    return ERR_OK;
}
