// SPDX-License-Identifier: MIT
#include "recorder/ingest/drain_queries.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/minmax.h"
#include "recorder/ingest/drain.h"
#include "session/stats_query_values.h"

static void add_row(uint64_t sums[static ANSWER_VALUES], const struct rec_row *row)
{
    sums[ANSWER_ALLOCATIONS] += row->allocations;
    sums[ANSWER_ALLOCATED_BYTES] += row->allocated_bytes;
    sums[ANSWER_FREES] += row->frees;
    sums[ANSWER_FREED_BYTES] += row->freed_bytes;
    sums[ANSWER_TEMPORARY] += row->temporary;
}

// Return the sums of the thread, or of its process.
static void add_up(const struct aggregator *aggregator,
                   const struct aggregator_thread *thread,
                   bool is_process,
                   uint64_t sums[static ANSWER_VALUES])
{
    const struct rec_thread *threads = aggregator->threads.threads.items;
    for (size_t i = 0; i < aggregator->totals.rows.rows.len; i++) {
        const struct rec_row *row = aggregator->totals.rows.rows.items + i;
        if (is_process ? threads[row->thread].process == thread->process->index
                       : row->thread == thread->entry) {
            add_row(sums, row);
        }
    }
}

static MUST_USE enum err find_values(struct aggregator *aggregator,
                                     struct lane_reader *reader,
                                     uint64_t values[static ANSWER_VALUES])
{
    const struct lane_query *query = &reader->query;
    if (query->what == STATS_QUERY_PEAK) {
        values[ANSWER_PEAK_BYTES] =
            aggregator_scope_peak(aggregator, &reader->thread, query->scope);
        return ERR_OK;
    }
    if (query->what == STATS_QUERY_PEAK_BEGIN && query->scope < LANE_SCOPES_MAX) {
        TRY(aggregator_begin_scope(aggregator, &reader->thread, query->scope));
        return ERR_OK;
    }
    add_up(aggregator, &reader->thread, query->what != STATS_QUERY_THREAD, values);
    return ERR_OK;
}

static enum err answer(struct aggregator *aggregator, struct lane_reader *reader)
{
    struct lane_answer *out = &reader->consumer.lane->answer;
    uint64_t values[ANSWER_VALUES] = {0};
    TRY(find_values(aggregator, reader, values));
    for (uint32_t i = 0; i < ANSWER_VALUES; i++) {
        atomic_store_explicit(&out->values[i], values[i], memory_order_relaxed);
    }
    // Release: pairs with the thread's acquire; the values come first.
    atomic_store_explicit(&out->answered, reader->query.number, memory_order_release);
    // A failure to wake is harmless: its sleep has a deadline.
    (void)syscall(SYS_futex, &out->answered, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    reader->query = (struct lane_query){0};
    return ERR_OK;
}

enum err drain_queries_answer(struct drain *drain,
                              uint32_t lane_count,
                              uint64_t complete_tick,
                              uint64_t now_ms,
                              bool *is_waiting)
{
    *is_waiting = false;
    for (uint32_t i = 0; i < lane_count; i++) {
        struct lane_reader *reader = &drain->lanes[drain->active[i]]->reader;
        if (reader->query.number == 0) {
            continue;
        }
        if (reader->query.passes == 0) {
            // Another thread may have counted before the query, and have read a later time.
            reader->query.tick_ms = max_u64(reader->query.tick_ms, now_ms);
        }
        if (reader->query.passes++ > 0 && reader->query.tick_ms <= complete_tick) {
            TRY(answer(drain->aggregator, reader));
        } else {
            *is_waiting = true;
        }
    }
    return ERR_OK;
}
