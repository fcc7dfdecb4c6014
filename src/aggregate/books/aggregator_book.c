// SPDX-License-Identifier: MIT
#include "aggregate/books/aggregator_book.h"

#include "aggregate/aggregator.h"
#include "base/minmax.h"

// How far a number may be beyond those that are known: other lanes have taken those in between.
#define NUMBERS_AHEAD_MAX (1u << 20)
// Entries that may wait. A thread is at most some ticks behind another one.
#define DEBTS_MAX (1u << 18)

enum err aggregator_book_row(const struct aggregator_thread *thread, uint32_t number, uint32_t node)
{
    struct u32_vec *nodes = &thread->process->book_nodes;
    struct u32_vec *rows = &thread->process->book_rows;
    if (number >= nodes->len + NUMBERS_AHEAD_MAX ||
        (number < nodes->len && nodes->items[number] != REC_NONE)) {
        return ERR_CORRUPT;
    }
    while (nodes->len <= number) {
        TRY(u32_vec_push(nodes, REC_NONE));
        TRY(u32_vec_push(rows, REC_NONE));
    }
    nodes->items[number] = node;
    return ERR_OK;
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
        const struct rec_cohort cohort = {.row = row,
                                          .born_slice = (uint32_t)min_u64(born, table->slice) >>
                                                        table->cohort_shift,
                                          .freed_slice = table->slice >> table->cohort_shift,
                                          .blocks = book_cell_count(entry->cohorts[i]),
                                          .bytes = book_cell_bytes(entry->cohorts[i])};
        if (cohort.born_slice < cohort.freed_slice && cohort.blocks != 0) {
            TRY(cohort_table_add_more(&table->cohorts, &cohort));
        }
    }
    return ERR_OK;
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
    process->book_blocks += sums->allocations - sums->frees;
    process->book_bytes += sums->allocated_bytes - sums->freed_bytes;
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
    TRY(row_table_count(table));
    *out = row != REC_NONE && can_count(table->rows.items + row, &sums);
    if (!*out) {
        return ERR_OK;
    }
    TRY(row_table_add_entry(table, row, entry));
    TRY(count_cohorts(table, row, entry, aggregator->totals.series.slice_shift));
    const uint32_t temporary = (uint32_t)min_u64(book_cell_count(entry->temporary), sums.frees);
    const uint64_t temporary_bytes = min_u64(book_cell_bytes(entry->temporary), sums.freed_bytes);
    table->rows.items[row].temporary += temporary;
    table->rows.items[row].temporary_bytes += temporary_bytes;
    aggregator->totals.sums.temporary += temporary;
    aggregator->totals.temporary_bytes += temporary_bytes;
    count_totals(aggregator, process, &sums);
    if (UNLIKELY(aggregator->scopes.threads.len > 0)) {
        tell_scopes(aggregator, row, by, &sums);
    }
    return ERR_OK;
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

void aggregator_book_peak(struct aggregator *aggregator,
                          const struct sum_value *value,
                          uint64_t error_bytes)
{
    struct heap_totals *totals = &aggregator->totals;
    totals->sums.slice_max_bytes = max_u64(totals->sums.slice_max_bytes, totals->sums.live_bytes);
    if (value->number <= totals->rows.peak_number) {
        return;
    }
    totals->rows.peak_number = value->number;
    totals->peak_bytes = value->peak_bytes;
    totals->peak_time_ms = totals->now_ms;
    totals->sums.slice_max_bytes = max_u64(totals->sums.slice_max_bytes, value->peak_bytes);
    aggregator->has_book_peak = true;
    aggregator->book_error_bytes = error_bytes;
    aggregator->book_ghost_bytes = 0;
}
