// SPDX-License-Identifier: MIT
// aggregator: see the header. aggregator_process.c has processes and threads,
// books/aggregator_book.c what threads count.
#include "aggregate/aggregator.h"

#include "session/wire.h"

enum err aggregator_init(struct aggregator *aggregator)
{
    heap_totals_init(&aggregator->totals, AGGREGATOR_CELLS_MAX, AGGREGATOR_COHORTS_MAX);
    return stack_table_init(&aggregator->stacks, &aggregator->strings);
}

enum err aggregator_note_stop(struct aggregator *aggregator, struct aggregator_stop stop)
{
    return aggregator_stop_vec_push(&aggregator->stops, stop);
}

enum err aggregator_complete_rows(struct aggregator *aggregator)
{
    struct row_table *table = &aggregator->totals.rows;
    for (uint32_t i = 0; i < table->rows.len; i++) {
        const struct rec_thread *thread =
            aggregator->threads.threads.items + table->rows.items[i].thread;
        const struct aggregator_process *process = aggregator->processes.items[thread->process];
        row_table_commit_peak(table, i, !process->is_ended, process->end_peak_number);
    }
    if (aggregator->has_book_peak) {
        heap_totals_sum_peaks(&aggregator->totals);
    }
    return ERR_OK;
}

enum err aggregator_row(struct aggregator *aggregator,
                        struct aggregator_thread *thread,
                        uint32_t node,
                        uint32_t *out_row)
{
    TRY(aggregator_thread_enter(aggregator, thread));
    if (UNLIKELY(aggregator_is_full(aggregator)) &&
        !row_table_has(&aggregator->totals.rows, thread->entry, node) &&
        !memory_budget_adds(&aggregator->budget)) {
        TRY(stack_table_merged(&aggregator->stacks, 0, REC_NONE, &node));
    }
    return row_table_get(&aggregator->totals.rows, thread->entry, node, out_row);
}

void aggregator_count_unknown(struct aggregator *aggregator,
                              const struct aggregator_process *process,
                              uint64_t count)
{
    const bool is_forked = (process->record.flags & REC_PROCESS_FORKED) != 0;
    if (aggregator->sampling.unsampled_allocations != 0) {
        aggregator->sampling.unsampled_frees += count;
        return;
    }
    *(aggregator->stops.len > 0 && !is_forked ? &aggregator->unrecorded_frees
                                              : &aggregator->unknown_frees) += count;
}

enum err aggregator_grew(struct aggregator *aggregator,
                         uint32_t row,
                         uint64_t old_bytes,
                         uint64_t size_bytes)
{
    return LIKELY(old_bytes == 0 || size_bytes < WIRE_GREW_MIN || size_bytes <= old_bytes)
               ? ERR_OK
               : realloc_table_add(&aggregator->reallocs, row, old_bytes, size_bytes);
}

void aggregator_seal(struct aggregator *aggregator)
{
    map_u64_release(&aggregator->stacks.module_index);
    id_index_release(&aggregator->stacks.frame_index);
    id_index_release(&aggregator->stacks.node_index);
    id_index_release(&aggregator->totals.rows.index);
    u32_vec_release(&aggregator->totals.rows.latest_of_nodes);
}

enum err aggregator_tick(struct aggregator *aggregator, uint64_t tick_ms)
{
    return heap_totals_advance(&aggregator->totals, tick_ms);
}

enum err aggregator_extend(struct aggregator *aggregator, uint64_t end_ms)
{
    // A slice that begins at the very end would be empty.
    return end_ms > 0 ? heap_totals_extend(&aggregator->totals, end_ms - 1) : ERR_OK;
}
