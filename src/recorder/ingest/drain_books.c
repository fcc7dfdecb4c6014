// SPDX-License-Identifier: MIT
#include "recorder/ingest/drain_books.h"

#include "aggregate/books/aggregator_book.h"
#include "base/minmax.h"
#include "recorder/session/block_words_list.h"

bool drain_books_are_kept(const struct drain *drain)
{
    return (drain->session->header->flags & SESSION_BOOKS) != 0;
}

static void add_to_sum(struct drain *drain, int64_t bytes)
{
    struct sum_part part = {.unsent_bytes = bytes};
    if (bytes != 0) {
        (void)shared_sum_send(&drain->session->header->sum, &part);
    }
}

void drain_books_end_lane(struct drain *drain,
                          struct lane_header *lane,
                          const struct aggregator_thread *thread)
{
    drain->flights.ended_bytes[0] += max_u64(thread->book_largest[0], thread->book_largest[1]);
    // Acquire: pairs with the release in lane_producer_close, after book_end.
    const bool is_closed = atomic_load_explicit(&lane->state, memory_order_acquire) == LANE_CLOSED;
    if (drain->session->words != NULL && *(const volatile uint32_t *)&lane->keeps_book != 0 &&
        !is_closed) {
        struct sum_part part = lane->sum_part;
        const uint32_t slot = lane->process_index % SESSION_MAX_PROCESSES;
        atomic_fetch_add_explicit(&drain->session->words->shares[slot].added_bytes,
                                  part.unsent_bytes, memory_order_relaxed);
        shared_sum_leave(&drain->session->header->sum, &part);
    }
}

// Take over the peak of the shared sum. Return whether there is a new one.
static bool note_peak(struct drain *drain)
{
    struct shared_sum *sum = &drain->session->header->sum;
    const struct sum_value value = shared_sum_read(sum);
    // Relaxed: bounds.
    const uint64_t batch_bytes = atomic_load_explicit(&sum->batch_bytes, memory_order_relaxed);
    const uint32_t threads = atomic_load_explicit(&sum->most_threads, memory_order_relaxed);
    return aggregator_book_peak(drain->aggregator, &value, batch_bytes,
                                (uint32_t)min_u64(threads, SESSION_MAX_LANES));
}

void drain_books_end_process(struct drain *drain, uint32_t slot)
{
    struct words_file *words = drain->session->words;
    if (words == NULL) {
        return;
    }
    // Before the rest leaves the sum: what the process held counts at the peaks until then.
    if (note_peak(drain)) {
        drain->flights.peak_ms = drain->clock_ms;
    }
    // Relaxed: its threads have ended.
    struct words_share *share = words->shares + slot;
    const int64_t left = atomic_exchange_explicit(&share->added_bytes, 0, memory_order_relaxed);
    drain->left_number = atomic_exchange_explicit(&share->peak_number, 0, memory_order_relaxed);
    add_to_sum(drain, -left);
}

void drain_books_ended_process(const struct drain *drain, struct aggregator_process *process)
{
    if (drain->left_number != 0 && drain->left_number <= process->end_peak_number) {
        process->end_peak_number = drain->left_number;
    }
}

// Add the blocks of processes that keep no books.
static void add_others(struct drain *drain)
{
    uint64_t live_bytes = 0;
    for (uint32_t slot = 0; slot < drain->slot_count; slot++) {
        const struct aggregator_process *process = drain->processes[slot].aggregator;
        if (process != NULL && !process->is_ended) {
            live_bytes += process->live_bytes - process->book_bytes;
        }
    }
    add_to_sum(drain, (int64_t)(live_bytes - drain->others_bytes));
    drain->others_bytes = live_bytes;
}

// A window of the largest blocks. At a peak that is seen now, a thread may have had in hand a block
// of this window or the one before: it holds events for BOOK_HOLD_MS, and a pass may be late.
#define FLIGHT_MS ((uint64_t)32)

static void turn_window(struct drain *drain)
{
    if (drain->clock_ms - drain->flights.since_ms < FLIGHT_MS) {
        return;
    }
    drain->flights.since_ms = drain->clock_ms;
    drain->flights.ended_bytes[1] = drain->flights.ended_bytes[0];
    drain->flights.ended_bytes[0] = 0;
    for (uint32_t i = 0; i < drain->active_count; i++) {
        struct aggregator_thread *thread = &drain->lanes[drain->active[i]]->reader.thread;
        thread->book_largest[1] = thread->book_largest[0];
        thread->book_largest[0] = 0;
    }
}

// Bound what threads had in hand at the peak: one block each.
static void note_flights(struct drain *drain, bool is_new_peak)
{
    uint64_t bytes = drain->flights.ended_bytes[0] + drain->flights.ended_bytes[1];
    for (uint32_t i = 0; i < drain->active_count; i++) {
        const struct aggregator_thread *thread = &drain->lanes[drain->active[i]]->reader.thread;
        bytes += max_u64(thread->book_largest[0], thread->book_largest[1]);
    }
    if (is_new_peak) {
        drain->flights.peak_ms = drain->clock_ms;
        drain->aggregator->book_flight_bytes = bytes;
    } else if (drain->clock_ms - drain->flights.peak_ms <= 2 * FLIGHT_MS) {
        drain->aggregator->book_flight_bytes = max_u64(drain->aggregator->book_flight_bytes, bytes);
    }
    turn_window(drain);
}

enum err drain_books_end_pass(struct drain *drain)
{
    if (!drain_books_are_kept(drain)) {
        return ERR_OK;
    }
    for (uint32_t slot = 0; slot < drain->slot_count; slot++) {
        struct aggregator_process *process = drain->processes[slot].aggregator;
        if (process != NULL && process->debts.len > 0) {
            TRY(aggregator_book_settle(drain->aggregator, process));
        }
    }
    add_others(drain);
    const bool is_new = note_peak(drain);
    // Relaxed: it orders nothing.
    if (atomic_load_explicit(&drain->session->header->sum.most_threads, memory_order_relaxed) > 1) {
        note_flights(drain, is_new);
    }
    return ERR_OK;
}

// Blocks of a process that are being listed.
struct listing {
    const struct aggregator_process *process;
    uint64_t now_ms;
    struct listed_block_vec *blocks;
    enum err err;
};

static void list_block(void *context, const struct word_block *word)
{
    struct listing *l = context;
    const struct listed_block block = {
        .address = word->address,
        .size_bytes = word->size_bytes,
        .row = aggregator_book_row_of(l->process, word->row),
        .born_ms = (uint32_t)min_u64(min_u64(word->birth_ms, l->now_ms), UINT32_MAX)};
    if (l->err == ERR_OK && block.row != REC_NONE) {
        l->err = listed_block_vec_push(l->blocks, block);
    }
}

static void pass_stale(void *context, const struct word_block *word)
{
    (void)context;
    (void)word;
}

enum err drain_books_list_blocks(const struct drain *drain,
                                 const struct aggregator_process *process,
                                 struct listed_block_vec *out)
{
    listed_block_vec_clear(out);
    if (process->book_nodes.len == 0) {
        return ERR_OK;
    }
    struct listing listing = {
        .process = process, .now_ms = drain->aggregator->totals.now_ms, .blocks = out};
    const struct block_words_visitor visitor = {
        .context = &listing, .live = list_block, .stale = pass_stale};
    TRY(block_words_list(drain->session->memfd, SESSION_WORDS_OFFSET,
                         words_process_number(process->join_number), &visitor, NULL));
    return listing.err;
}
