// SPDX-License-Identifier: MIT
#include "aggregate/books/aggregator_book.h"

#include <math.h>

#include "aggregate/aggregator.h"
#include "base/minmax.h"
#include "session/books/block_words.h"
#include "session/books/sampling_level.h"

// How far a number may be beyond those that are known: other lanes have taken those in between.
#define NUMBERS_AHEAD_MAX (1u << 20)
// Entries that may wait. A thread is at most some ticks behind another one.
#define DEBTS_MAX (1u << 18)

// Note the level of the number's range.
static enum err note_level(struct aggregator_process *process, uint32_t number, uint32_t level)
{
    struct u32_vec *levels = &process->book_levels;
    const uint32_t range = number / WORD_RANGE_ROWS;
    while (levels->len <= range) {
        TRY(u32_vec_push(levels, REC_NONE));
    }
    if (levels->items[range] == REC_NONE) {
        levels->items[range] = level;
    }
    return levels->items[range] == level ? ERR_OK : ERR_CORRUPT;
}

enum err aggregator_book_row(const struct aggregator_thread *thread,
                             uint32_t number,
                             uint32_t level,
                             uint32_t node)
{
    struct u32_vec *nodes = &thread->process->book_nodes;
    struct u32_vec *rows = &thread->process->book_rows;
    if (number >= nodes->len + NUMBERS_AHEAD_MAX ||
        (number < nodes->len &&
         (nodes->items[number] != REC_NONE || rows->items[number] != REC_NONE))) {
        return ERR_CORRUPT;
    }
    TRY(note_level(thread->process, number, level));
    while (nodes->len <= number) {
        TRY(u32_vec_push(nodes, REC_NONE));
        TRY(u32_vec_push(rows, REC_NONE));
        TRY(u32_vec_push(&thread->process->book_live, 0));
    }
    nodes->items[number] = node;
    return ERR_OK;
}

// Give a number back if no slot has it and no block of it lives.
static enum err give_back(struct aggregator_process *process, uint32_t number)
{
    if (process->book_has_gaps || process->book_nodes.items[number] != REC_NONE ||
        process->book_live.items[number] != 0) {
        return ERR_OK;
    }
    process->book_rows.items[number] = REC_NONE;
    return u32_vec_push(&process->book_unused, number);
}

enum err aggregator_book_leave(const struct aggregator *aggregator,
                               struct aggregator_process *process,
                               uint32_t number)
{
    if (aggregator->blocks != NULL || number >= process->book_nodes.len ||
        process->book_nodes.items[number] == REC_NONE) {
        return ERR_OK;
    }
    process->book_nodes.items[number] = REC_NONE;
    return give_back(process, number);
}

uint32_t aggregator_book_row_of(const struct aggregator_process *process, uint32_t number)
{
    return number < process->book_rows.len ? process->book_rows.items[number] : REC_NONE;
}

struct sums {
    uint64_t allocations;
    uint64_t allocated_bytes;
    uint64_t frees;
    uint64_t freed_bytes;
};

static struct sums sums_of(const struct book_entry *entry)
{
    struct sums sums = {0};
    for (uint32_t i = 0; i < entry->size_count; i++) {
        sums.allocations += book_cell_count(entry->sizes[i]);
        sums.allocated_bytes += book_cell_bytes(entry->sizes[i]);
    }
    for (uint32_t i = 0; i < entry->life_count; i++) {
        sums.frees += book_cell_count(entry->lives[i]);
        sums.freed_bytes += book_cell_bytes(entry->lives[i]);
    }
    sums.allocations *= entry->weight;
    sums.allocated_bytes *= entry->weight;
    sums.frees *= entry->weight;
    sums.freed_bytes *= entry->weight;
    return sums;
}

// Whether the row has had what the entry frees.
static bool can_count(const struct rec_row *row, const struct sums *sums)
{
    return row->frees + sums->frees <= row->allocations + sums->allocations &&
           row->freed_bytes + sums->freed_bytes <= row->allocated_bytes + sums->allocated_bytes;
}

// Count the blocks that lived longer than their slice.
static enum err count_cohorts(struct row_table *table,
                              uint32_t row,
                              const struct book_entry *entry,
                              uint32_t slice_shift)
{
    for (uint32_t i = 0; i < entry->cohort_count; i++) {
        const uint64_t born = entry->born_ms[i] >> slice_shift;
        const struct rec_cohort cohort = {
            .row = row,
            .born_slice = (uint32_t)min_u64(born, table->slice) >> table->cohort_shift,
            .freed_slice = table->slice >> table->cohort_shift,
            .blocks = book_cell_count(entry->cohorts[i]) * (uint64_t)entry->weight,
            .bytes = book_cell_bytes(entry->cohorts[i]) * entry->weight};
        if (cohort.born_slice < cohort.freed_slice && cohort.blocks != 0) {
            TRY(cohort_table_add_more(&table->cohorts, &cohort));
        }
    }
    return ERR_OK;
}

// Add an event of a thread that had seen peak `number`.
static void add_variance(struct variance_share *share, uint32_t number, double change)
{
    if (number > share->number) {
        share->before += share->since;
        share->since = 0;
        share->number = number;
    }
    *(number == share->number ? &share->since : &share->before) += change;
}

// Note what a chosen block stands for.
static void count_weight(struct aggregator *aggregator,
                         struct aggregator_process *process,
                         const struct book_entry *entry,
                         const struct sums *sums)
{
    struct aggregator_sampling *sampling = &aggregator->sampling;
    const uint64_t chosen = sums->allocations / entry->weight;
    sampling->sampled_allocations += chosen;
    sampling->represented_allocations += sums->allocations - chosen;
    sampling->represented_bytes += sums->allocated_bytes - sums->allocated_bytes / entry->weight;
    sampling->max_weight = max_u64(sampling->max_weight, entry->weight);
    const double bytes = (double)book_entry_net(entry).bytes; // of one block, times its weight
    const double weight = (double)entry->weight;
    add_variance(&process->variance, entry->peak_number,
                 bytes * fabs(bytes) * (weight - 1) / weight);
}

static void count_totals(struct aggregator *aggregator,
                         struct aggregator_process *process,
                         const struct sums *sums)
{
    struct heap_totals *totals = &aggregator->totals;
    heap_totals_raise(totals, sums->allocations, sums->allocated_bytes);
    heap_totals_lower(totals, sums->frees, sums->freed_bytes);
    process->live_bytes += sums->allocated_bytes - sums->freed_bytes;
    process->book_ms = totals->now_ms;
    process->live_blocks += sums->allocations - sums->frees;
}

// Tell the scopes in which the row's thread follows its peak. While it has one, its entries have
// one event each. `by`: the thread that freed.
static void
tell_scopes(struct aggregator *aggregator, uint32_t row, uint32_t by, const struct sums *sums)
{
    const uint32_t owner = aggregator->totals.rows.rows.items[row].thread;
    const uint64_t now_ms = aggregator->totals.now_ms;
    if (sums->allocations > 0) {
        peak_scopes_allocated(&aggregator->scopes, owner, now_ms, sums->allocated_bytes);
    }
    if (sums->frees > 0) {
        peak_scopes_freed(&aggregator->scopes, owner, by, now_ms, sums->freed_bytes);
    }
}

// Count an entry of the thread `by` if its row has had what it frees. *out: it was counted.
static enum err count_entry(struct aggregator *aggregator,
                            struct aggregator_process *process,
                            uint32_t by,
                            const struct book_entry *entry,
                            bool *out)
{
    struct row_table *table = &aggregator->totals.rows;
    const uint32_t row = aggregator_book_row_of(process, entry->row);
    const struct sums sums = sums_of(entry);
    *out = row != REC_NONE && can_count(table->rows.items + row, &sums);
    if (!*out) {
        return ERR_OK;
    }
    TRY(row_table_add_entry(table, row, entry));
    TRY(count_cohorts(table, row, entry, aggregator->totals.series.slice_shift));
    const uint64_t temporary =
        min_u64(book_cell_count(entry->temporary) * (uint64_t)entry->weight, sums.frees);
    const uint64_t temporary_bytes =
        min_u64(book_cell_bytes(entry->temporary) * entry->weight, sums.freed_bytes);
    table->rows.items[row].temporary += temporary;
    table->rows.items[row].temporary_bytes += temporary_bytes;
    aggregator->totals.sums.temporary += temporary;
    aggregator->totals.temporary_bytes += temporary_bytes;
    count_totals(aggregator, process, &sums);
    if (entry->weight > 1) {
        count_weight(aggregator, process, entry, &sums);
    }
    if (UNLIKELY(aggregator->scopes.threads.len > 0)) {
        tell_scopes(aggregator, row, by, &sums);
    }
    process->book_live.items[entry->row] +=
        (uint32_t)(sums.allocations / entry->weight - sums.frees / entry->weight);
    return process->book_nodes.items[entry->row] == REC_NONE ? give_back(process, entry->row)
                                                             : ERR_OK;
}

// Give the number a row at its first allocation, which is its own thread's.
static enum err begin_row(struct aggregator *aggregator,
                          struct aggregator_thread *thread,
                          const struct book_entry *entry)
{
    const struct aggregator_process *process = thread->process;
    const uint32_t number = entry->row;
    if (entry->size_count == 0 || number >= process->book_rows.len ||
        process->book_nodes.items[number] == REC_NONE ||
        process->book_rows.items[number] != REC_NONE) {
        return ERR_OK;
    }
    return aggregator_row(aggregator, thread, process->book_nodes.items[number],
                          process->book_rows.items + number);
}

// Count an entry's allocations, and leave its frees. All that it did before its peak goes with its
// allocations: shares of the peak add up in any parts.
static enum err count_allocations(struct aggregator *aggregator,
                                  const struct aggregator_thread *thread,
                                  struct book_entry *entry)
{
    struct book_entry part = *entry;
    bool is_counted;
    part.life_count = 0;
    part.cohort_count = 0;
    part.temporary = 0;
    TRY(count_entry(aggregator, thread->process, thread->entry, &part, &is_counted));
    if (is_counted) {
        entry->size_count = 0;
        entry->before_bytes = 0;
        entry->before_blocks = 0;
    }
    return ERR_OK;
}

enum err aggregator_book_add(struct aggregator *aggregator,
                             struct aggregator_thread *thread,
                             const struct book_entry *entry)
{
    bool is_counted;
    TRY(begin_row(aggregator, thread, entry));
    TRY(count_entry(aggregator, thread->process, thread->entry, entry, &is_counted));
    if (is_counted) {
        return ERR_OK;
    }
    struct book_entry rest = *entry;
    if (rest.size_count != 0) {
        TRY(count_allocations(aggregator, thread, &rest));
    }
    return thread->process->debts.len < DEBTS_MAX
               ? book_entry_vec_push(&thread->process->debts, rest)
               : ERR_CORRUPT;
}

enum err aggregator_book_settle(struct aggregator *aggregator, struct aggregator_process *process)
{
    struct book_entry_vec *debts = &process->debts;
    size_t kept = 0;
    for (size_t i = 0; i < debts->len; i++) {
        bool is_counted;
        TRY(count_entry(aggregator, process, REC_NONE, debts->items + i, &is_counted));
        if (!is_counted) {
            debts->items[kept++] = debts->items[i];
        }
    }
    debts->len = kept;
    return ERR_OK;
}

double aggregator_book_variance(const struct aggregator *aggregator)
{
    const uint32_t latest = aggregator->totals.rows.peak_number;
    double variance = 0;
    for (size_t i = 0; i < aggregator->processes.len; i++) {
        const struct aggregator_process *process = aggregator->processes.items[i];
        const struct variance_share *share = &process->variance;
        const bool has_changed = share->number >= latest;
        const bool has_left = process->is_ended && process->end_peak_number < latest;
        variance += !has_changed && has_left ? 0 : share->before;
        variance += has_changed || has_left ? 0 : share->since;
    }
    return variance > 0 ? variance : 0; // records may still be missing
}

uint64_t aggregator_book_weight(const struct aggregator *aggregator,
                                const struct aggregator_process *process,
                                uint32_t number,
                                uint64_t size_bytes)
{
    const struct u32_vec *levels = &process->book_levels;
    const uint32_t range = number / WORD_RANGE_ROWS;
    const uint32_t level = range < levels->len ? levels->items[range] : 0;
    const uint64_t of_level = level <= LANE_LEVEL_MAX ? sampling_interval(level) : 0;
    return block_weight(size_bytes, max_u64(aggregator->sample_bytes, of_level));
}

void aggregator_book_peak(struct aggregator *aggregator,
                          const struct sum_value *value,
                          uint64_t error_bytes)
{
    struct heap_totals *totals = &aggregator->totals;
    totals->sums.slice_max_bytes = max_u64(totals->sums.slice_max_bytes, totals->sums.live_bytes);
    if (value->number <= totals->rows.peak_number) {
        aggregator->book_error_bytes = max_u64(aggregator->book_error_bytes, error_bytes);
        return;
    }
    totals->rows.peak_number = value->number;
    totals->peak_bytes = value->peak_bytes;
    aggregator->book_peak_bytes = value->peak_bytes;
    totals->peak_time_ms = totals->now_ms;
    totals->sums.slice_max_bytes = max_u64(totals->sums.slice_max_bytes, value->peak_bytes);
    aggregator->has_book_peak = true;
    aggregator->book_error_bytes = error_bytes;
    aggregator->book_ghost_bytes = 0;
}
