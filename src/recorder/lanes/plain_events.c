// SPDX-License-Identifier: MIT
#include "recorder/lanes/plain_events.h"

#include "base/minmax.h"
#include "session/wire.h"

// What a run of events changes, and what it needs most. The aggregator's sums follow at its end.
struct run {
    struct row_table *table;
    struct live_map *live;
    uint64_t now_ms;
    uint32_t slice_shift;
    uint64_t live_blocks; // of all processes
    uint64_t live_bytes;
    uint64_t highest_bytes; // of live_bytes after an allocation; 0: none
    uint64_t frees;
    uint64_t freed_bytes;
    uint64_t latest_freed_bytes;
};

bool plain_events_are(const struct aggregator *aggregator, const struct aggregator_thread *thread)
{
    return thread->stamp == 0 && aggregator->stamped_count == 0 && aggregator->budget.level == 0 &&
           !aggregator->estimate.is_there && aggregator->sampling.sampled_allocations == 0 &&
           aggregator->observers.count == 0 && thread->process->pending.count == 0;
}

static NOINLINE void
note_peak(struct aggregator *aggregator, uint64_t live_bytes, uint64_t live_blocks)
{
    aggregator->totals.peak_bytes = live_bytes;
    aggregator->totals.peak_blocks = live_blocks;
    aggregator->totals.peak_time_ms = aggregator->totals.now_ms;
    aggregator->totals.rows.peak_number++;
    peak_bound_peaked(&aggregator->bound);
}

// `is_near`: the rows are few, so that their memory is near. A constant, as for the next functions.
ALWAYS_INLINE enum err
count_allocation(struct run *run, uint64_t address, uint32_t row, uint64_t size_bytes, bool is_near)
{
    const struct live_block block = {.size_bytes = size_bytes, .born_ms = run->now_ms, .row = row};
    TRY(live_map_add(run->live, address, &block));
    TRY(is_near ? row_table_count_allocated(run->table, row, size_bytes)
                : row_table_allocated(run->table, row, size_bytes));
    run->live_blocks++;
    run->live_bytes += size_bytes;
    run->highest_bytes = max_u64(run->highest_bytes, run->live_bytes);
    return ERR_OK;
}

ALWAYS_INLINE enum err count_free(struct run *run, struct live_block block, bool is_near)
{
    const uint64_t lifetime_ms = run->now_ms > block.born_ms ? run->now_ms - block.born_ms : 0;
    const uint32_t lifetime = rec_bucket_of(lifetime_ms);
    const uint32_t born_slice = min_u64(block.born_ms >> run->slice_shift, run->table->slice);
    run->live_blocks--;
    run->live_bytes -= block.size_bytes;
    run->frees++;
    run->freed_bytes += block.size_bytes;
    run->latest_freed_bytes = block.size_bytes;
    return is_near ? row_table_count_freed(run->table, block.row, block.size_bytes, lifetime,
                                           born_slice)
                   : row_table_freed(run->table, block.row, block.size_bytes, lifetime, born_slice);
}

ALWAYS_INLINE enum err count_words(struct aggregator *aggregator,
                                   struct run *run,
                                   const struct u32_vec *rows,
                                   struct plain_words *words,
                                   bool is_near)
{
    const uint64_t *at = words->words + words->at;
    const uint64_t *end = words->words + words->len;
    struct run r = *run;
    enum err err = ERR_OK;
    while (at < end && err == ERR_OK) {
        const uint64_t address = at[0] >> 8;
        const enum wire_tag tag = wire_tag_of(at[0]);
        if (tag == WIRE_FREE) {
            struct live_block block;
            if (UNLIKELY(!live_map_take(r.live, address, &block))) {
                break;
            }
            err = count_free(&r, block, is_near);
            at++;
        } else if (tag == WIRE_ALLOC && end - at > 1) {
            const uint32_t slot = (uint32_t)(at[1] >> WIRE_SIZE_BITS);
            const uint32_t row = slot < rows->len ? rows->items[slot] : REC_NONE;
            if (UNLIKELY(row == REC_NONE || address == 0)) {
                break;
            }
            err = count_allocation(&r, address, row, at[1] & WIRE_SIZE_MAX, is_near);
            if (UNLIKELY(r.live_bytes > aggregator->totals.peak_bytes)) {
                note_peak(aggregator, r.live_bytes, r.live_blocks);
            }
            at += 2;
        } else {
            break;
        }
    }
    words->at = (size_t)(at - words->words);
    *run = r;
    return err;
}

// Add what the run changed to the aggregator's sums. Return the number of its events.
static uint64_t
end_run(struct aggregator *aggregator, struct aggregator_process *process, const struct run *run)
{
    struct heap_totals *totals = &aggregator->totals;
    struct running_sums *sums = &totals->sums;
    // Modulo 2^64: more may have been freed than allocated.
    const uint64_t change_bytes = run->live_bytes - sums->live_bytes;
    const uint64_t allocations = run->live_blocks - totals->live_blocks + run->frees;
    const uint64_t others_bytes = sums->live_bytes - process->live_bytes;
    if (run->highest_bytes > 0) {
        sums->slice_max_bytes = max_u64(sums->slice_max_bytes, run->highest_bytes);
        const uint64_t own_bytes = run->highest_bytes - others_bytes;
        process->pass_peak_bytes = max_u64(process->pass_peak_bytes, own_bytes);
        process->record.peak_bytes = max_u64(process->record.peak_bytes, own_bytes);
    }
    sums->allocations += allocations;
    sums->allocated_bytes += change_bytes + run->freed_bytes;
    sums->frees += run->frees;
    sums->freed_bytes += run->freed_bytes;
    sums->live_bytes = run->live_bytes;
    totals->live_blocks = run->live_blocks;
    process->live_bytes += change_bytes;
    return allocations + run->frees;
}

enum err plain_events_count(struct aggregator *aggregator,
                            struct aggregator_thread *thread,
                            const struct u32_vec *rows,
                            struct plain_words *words)
{
    struct heap_totals *totals = &aggregator->totals;
    struct run run = {.table = &totals->rows,
                      .live = &thread->process->live,
                      .now_ms = totals->now_ms,
                      .slice_shift = totals->series.slice_shift,
                      .live_blocks = totals->live_blocks,
                      .live_bytes = totals->sums.live_bytes,
                      .latest_freed_bytes = thread->freed_bytes};
    enum err err = ERR_OK;
    if (row_table_needs_prefetch(&totals->rows)) {
        err = count_words(aggregator, &run, rows, words, false);
    } else {
        TRY(row_table_count(&totals->rows));
        err = count_words(aggregator, &run, rows, words, true);
    }
    thread->freed_bytes = run.latest_freed_bytes;
    words->events += end_run(aggregator, thread->process, &run);
    return err;
}
