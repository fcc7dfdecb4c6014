// SPDX-License-Identifier: MIT
// aggregator: see the header. This file counts events; aggregator_process.c has processes and
// threads.
#include "aggregate/aggregator.h"

#include "aggregate/aggregator_sampling.h"
#include "aggregate/peak/byte_weight.h"
#include "base/minmax.h"
#include "session/books/sampling_level.h"
#include "session/wire.h"

enum err aggregator_init(struct aggregator *aggregator, uint64_t seed)
{
    aggregator->seed = seed;
    aggregator->held_since_ms = UINT64_MAX;
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
    TRY(row_table_count(table));
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

// Note the height of the sums, and the peaks that it sets.
static inline void note_height(struct aggregator *aggregator, struct aggregator_process *process)
{
    uint64_t all_bytes = aggregator->totals.sums.live_bytes;
    uint64_t own_bytes = process->live_bytes;
    if (UNLIKELY(aggregator->estimate.is_there)) {
        all_bytes = aggregator_estimate_height(aggregator, process, all_bytes, &own_bytes);
    }
    process->pass_peak_bytes = max_u64(process->pass_peak_bytes, own_bytes);
    process->record.peak_bytes = max_u64(process->record.peak_bytes, own_bytes);
    if (heap_totals_note_height(&aggregator->totals, all_bytes)) {
        peak_bound_peaked(&aggregator->bound);
    }
}

// Add `count` new blocks of `bytes` in all to the sums, and note the peaks that they set, unless
// they have been freed since.
static inline void raise_sums(struct aggregator *aggregator,
                              struct aggregator_process *process,
                              uint64_t count,
                              uint64_t bytes,
                              bool is_freed)
{
    heap_totals_raise(&aggregator->totals, count, bytes);
    process->live_bytes += bytes;
    if (LIKELY(!is_freed)) {
        note_height(aggregator, process);
    }
}

// Blocks are passed by value from here on: a block whose address is taken is kept in memory, and
// each event has one.

// Return how many other blocks the block stands for.
static uint32_t others_of(struct live_block block)
{
    return ((uint32_t)1 << block.shift) - 1;
}

static uint64_t weighted_bytes(struct live_block block)
{
    return block.size_bytes << block.shift;
}

static NOINLINE enum err tell_allocated(struct aggregator *aggregator,
                                        const struct aggregator_thread *thread,
                                        uint64_t peak_before,
                                        uint64_t address,
                                        struct live_block block)
{
    const struct observed_event what = {
        .event = {.time_ms = block.born_ms,
                  .address = address,
                  .size_bytes = block.size_bytes,
                  .kind = REC_EVENT_ALLOCATION,
                  .process = thread->process->index,
                  .thread = thread->entry,
                  .row = block.row,
                  .others = others_of(block)},
        .block = &block,
        .bytes = weighted_bytes(block),
        .owner = thread->entry,
        .peak_number = aggregator->totals.rows.peak_number,
        .peak_before = peak_before,
    };
    return observers_tell(&aggregator->observers, &what);
}

// The thread that frees a block, in the thread table; REC_NONE if it is not known.
struct freeing {
    uint32_t thread;
    enum rec_event_kind kind;
};

static NOINLINE enum err tell_freed(struct aggregator *aggregator,
                                    const struct aggregator_process *process,
                                    uint64_t address,
                                    struct live_block block,
                                    struct freeing by)
{
    const struct observed_event what = {
        .event = {.time_ms = aggregator->totals.now_ms,
                  .address = address,
                  .kind = by.kind,
                  .process = process->index,
                  .thread = by.thread,
                  .row = REC_NONE},
        .block = &block,
        .bytes = weighted_bytes(block),
        .owner = aggregator->totals.rows.rows.items[block.row].thread,
        .peak_number = aggregator->totals.rows.peak_number,
    };
    return observers_tell(&aggregator->observers, &what);
}

// Count the free of a block that was taken out of the live map, or never got there.
ALWAYS_INLINE enum err close_block(struct aggregator *aggregator,
                                   struct aggregator_process *process,
                                   uint64_t address,
                                   struct live_block block,
                                   struct freeing by)
{
    const uint64_t now_ms = aggregator->totals.now_ms;
    if (UNLIKELY(aggregator->observers.count > 0)) {
        TRY(tell_freed(aggregator, process, address, block, by));
    }
    heap_totals_lower(&aggregator->totals, 1, block.size_bytes);
    process->live_bytes -= block.size_bytes;
    uint64_t lifetime_ms = now_ms > block.born_ms ? now_ms - block.born_ms : 0;
    const uint64_t born = block.born_ms >> aggregator->totals.series.slice_shift;
    const uint32_t born_slice =
        born < aggregator->totals.rows.slice ? (uint32_t)born : aggregator->totals.rows.slice;
    TRY(row_table_freed(&aggregator->totals.rows, block.row, block.size_bytes,
                        rec_bucket_of(lifetime_ms), born_slice));
    return LIKELY(block.shift == 0)
               ? ERR_OK
               : aggregator_remove_represented(aggregator, process, block, lifetime_ms, born_slice);
}

// Count the free that waited for this block.
static NOINLINE enum err close_late(struct aggregator *aggregator,
                                    struct aggregator_process *process,
                                    uint64_t address,
                                    struct live_block block)
{
    const struct freeing unknown = {.thread = REC_NONE, .kind = REC_EVENT_FREE_LATEST};
    aggregator->pending_count--;
    return close_block(aggregator, process, address, block, unknown);
}

// Inline to make the shift a constant.
ALWAYS_INLINE enum err allocate(struct aggregator *aggregator,
                                struct aggregator_thread *thread,
                                uint64_t address,
                                uint32_t row,
                                uint64_t size_bytes,
                                uint32_t shift)
{
    struct aggregator_process *process = thread->process;
    const uint64_t stamp = thread->stamp;
    const struct live_block block = {
        .size_bytes = size_bytes, .born_ms = aggregator->totals.now_ms, .row = row, .shift = shift};
    bool is_freed =
        process->pending.count > 0 && pending_frees_take(&process->pending, address, stamp);
    if (!is_freed) {
        TRY(live_map_add(&process->live, address, &block));
    }
    TRY(row_table_allocated(&aggregator->totals.rows, row, size_bytes));
    if (shift != 0) {
        TRY(aggregator_add_represented(aggregator, process, block));
    }
    if (UNLIKELY(stamp != 0)) {
        peak_bound_allocating(&aggregator->bound, &thread->flight, stamp, size_bytes);
    }
    const uint64_t peak_before = aggregator->totals.rows.peak_number;
    raise_sums(aggregator, process, (uint64_t)1 << shift, weighted_bytes(block), is_freed);
    if (UNLIKELY(aggregator->observers.count > 0)) {
        TRY(tell_allocated(aggregator, thread, peak_before, address, block));
    }
    if (UNLIKELY(stamp != 0)) {
        aggregator->stamped_count++;
    }
    if (UNLIKELY(stamp != 0)) {
        peak_bound_allocated(&aggregator->bound, &thread->flight, stamp, block.size_bytes,
                             aggregator_live_bytes(aggregator));
    } else if (UNLIKELY(aggregator->stamped_count > 0)) {
        peak_bound_joined(&aggregator->bound, 0, aggregator_live_bytes(aggregator));
    }
    if (UNLIKELY(is_freed)) {
        return close_late(aggregator, process, address, block);
    }
    return ERR_OK;
}

// Allocate while live blocks use their part of the memory (memory_budget.h).
static NOINLINE enum err allocate_sparsely(struct aggregator *aggregator,
                                           struct aggregator_thread *thread,
                                           uint64_t address,
                                           uint32_t row,
                                           uint64_t size_bytes,
                                           uint32_t shift)
{
    // Of two choices, one after the other: for each, 1 / p is at most 1 + interval / length.
    const uint64_t of_lanes = shift != 0 ? aggregator->sampling.lane_interval_bytes : 0;
    const uint64_t own = sampling_interval(aggregator->budget.level);
    const uint64_t of_both = of_lanes + own + of_lanes * own / (size_bytes | 1);
    aggregator->sampling.interval_bytes = max_u64(aggregator->sampling.interval_bytes, of_both);
    return memory_budget_takes(&aggregator->budget, size_bytes, &shift)
               ? allocate(aggregator, thread, address, row, size_bytes, shift)
               : aggregator_skip_block(aggregator, thread, address, size_bytes);
}

enum err aggregator_allocate(struct aggregator *aggregator,
                             struct aggregator_thread *thread,
                             uint64_t address,
                             uint32_t row,
                             uint64_t size_bytes)
{
    return LIKELY(aggregator->budget.level == 0)
               ? allocate(aggregator, thread, address, row, size_bytes, 0)
               : allocate_sparsely(aggregator, thread, address, row, size_bytes, 0);
}

static NOINLINE enum err
free_unknown(struct aggregator *aggregator, struct aggregator_thread *thread, uint64_t address)
{
    struct pending_frees *pending = &thread->process->pending;
    TRY(observers_tell(&aggregator->observers,
                       &(struct observed_event){.event = {.time_ms = aggregator->totals.now_ms,
                                                          .address = address,
                                                          .kind = REC_EVENT_UNKNOWN_FREE,
                                                          .process = thread->process->index,
                                                          .thread = thread->entry,
                                                          .row = REC_NONE}}));
    uint64_t before = pending->count;
    uint64_t expired = 0;
    TRY(pending_frees_add(pending, address, aggregator->totals.now_ms, thread->stamp, &expired));
    aggregator_count_unknown(aggregator, thread->process, expired);
    aggregator->pending_count = aggregator->pending_count + pending->count - before;
    return ERR_OK;
}

// Count a temporary allocation. The thread states that it frees the address of its latest
// allocation; `taken` is the block found there. It is that allocation if it is the thread's own:
// another thread may have freed that block and allocated another one there, but the thread's own
// next allocation would be its latest.
static enum err count_temporary(struct aggregator *aggregator,
                                const struct aggregator_thread *thread,
                                uint64_t address,
                                struct live_block taken)
{
    if (aggregator->totals.rows.rows.items[taken.row].thread != thread->entry) {
        return ERR_OK;
    }
    const uint64_t count = (uint64_t)1 << taken.shift;
    aggregator->totals.sums.temporary += count;
    aggregator->totals.temporary_bytes += count * taken.size_bytes;
    TRY(row_table_was_temporary(&aggregator->totals.rows, taken.row, taken.size_bytes,
                                (uint32_t)count));
    if (LIKELY(aggregator->observers.count == 0)) {
        return ERR_OK;
    }
    return observers_tell(&aggregator->observers,
                          &(struct observed_event){.event = {.time_ms = aggregator->totals.now_ms,
                                                             .address = address,
                                                             .size_bytes = taken.size_bytes,
                                                             .kind = REC_EVENT_TEMPORARY,
                                                             .process = thread->process->index,
                                                             .thread = thread->entry,
                                                             .row = taken.row,
                                                             .others = others_of(taken)}});
}

// Count the free of a block that was taken out of the live map.
ALWAYS_INLINE enum err free_block(struct aggregator *aggregator,
                                  struct aggregator_thread *thread,
                                  uint64_t address,
                                  struct live_block block,
                                  bool is_temporary)
{
    if (is_temporary) {
        TRY(count_temporary(aggregator, thread, address, block));
    }
    thread->freed_bytes = block.size_bytes;
    const struct freeing by = {.thread = thread->entry, .kind = REC_EVENT_FREE};
    TRY(close_block(aggregator, thread->process, address, block, by));
    if (UNLIKELY(thread->stamp != 0)) {
        aggregator->stamped_count++;
        peak_bound_freed(&aggregator->bound, &thread->flight, thread->stamp, block.size_bytes,
                         aggregator_live_bytes(aggregator));
    }
    return ERR_OK;
}

// Free a block that is not among the recent ones.
static NOINLINE enum err free_older(struct aggregator *aggregator,
                                    struct aggregator_thread *thread,
                                    uint64_t address,
                                    bool is_temporary)
{
    struct live_block block;
    if (LIKELY(live_map_take_from_table(&thread->process->live, address, &block))) {
        return free_block(aggregator, thread, address, block, is_temporary);
    }
    thread->freed_bytes = 0;
    return free_unknown(aggregator, thread, address);
}

enum err aggregator_free(struct aggregator *aggregator,
                         struct aggregator_thread *thread,
                         uint64_t address,
                         bool is_temporary)
{
    struct live_block block;
    return LIKELY(live_map_take_recent(&thread->process->live, address, &block))
               ? free_block(aggregator, thread, address, block, is_temporary)
               : free_older(aggregator, thread, address, is_temporary);
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

enum err aggregator_reallocate(struct aggregator *aggregator,
                               struct aggregator_thread *thread,
                               const struct aggregator_move *move)
{
    TRY(aggregator_free(aggregator, thread, move->from, move->is_temporary));
    TRY(aggregator_grew(aggregator, move->row, thread->freed_bytes, move->size_bytes));
    return aggregator_allocate(aggregator, thread, move->to, move->row, move->size_bytes);
}
