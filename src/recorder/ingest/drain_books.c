// SPDX-License-Identifier: MIT
#include "recorder/ingest/drain_books.h"

#include "aggregate/books/aggregator_book.h"
#include "aggregate/books/book_blocks.h"
#include "base/minmax.h"
#include "recorder/session/block_words_list.h"
#include "session/books/seen_peak.h"
#include "session/recorder_wake.h"

// The clock that a thread has read may be so far ahead of ours, while it wakes from its rest.
#define CLOCK_SLACK_MS 2u

static void add_to_sum(struct drain *drain, int64_t bytes)
{
    shared_sum_change(&drain->session->header->sum, bytes);
}

static struct words_share *share_of(const struct drain *drain, const struct lane_header *lane)
{
    const uint32_t slot = *(const volatile uint32_t *)&lane->process_index;
    return drain->session->words->shares + slot % SESSION_MAX_PROCESSES;
}

// Add a part, which is a private copy.
static void send_part(const struct drain *drain, struct words_share *share, struct sum_part *part)
{
    words_share_add(share, part->unsent_bytes);
    (void)shared_sum_send(&drain->session->header->sum, part); // its value is in the sum
}

void drain_books_send_part(struct drain *drain, struct lane_header *lane)
{
    struct sum_part part = lane->sum_part;
    if (book_reader_is_kept(lane) && part.is_sending == 0) {
        send_part(drain, share_of(drain, lane), &part);
        lane->sum_part = part;
    }
}

// Add what a thread has left, and take it out of those that count. One that was killed while it
// added its part may have done so: then the bound has the part, and the thread stays, so that no
// other one believes to be alone, and the bound to be 0.
static void end_part(const struct drain *drain, struct words_share *share, struct sum_part *part)
{
    struct shared_sum *sum = &drain->session->header->sum;
    const bool is_doubted = part->is_sending != 0 && part->unsent_bytes != 0;
    if (is_doubted) {
        shared_sum_doubt(sum, part);
    } else {
        send_part(drain, share, part);
    }
    shared_sum_release(sum, part);
    const uint32_t threads = words_share_take_thread(share);
    shared_sum_leave(sum, is_doubted ? 0 : threads);
}

void drain_books_end_lane(struct drain *drain, const struct lane_header *lane)
{
    // Acquire: pairs with the release in lane_producer_close, after book_end.
    const bool is_closed = atomic_load_explicit(&lane->state, memory_order_acquire) == LANE_CLOSED;
    if (book_reader_is_kept(lane) && !is_closed) {
        struct sum_part part = lane->sum_part;
        end_part(drain, share_of(drain, lane), &part);
    }
}

// Tell threads which peak has been seen, and the list of blocks which one is the latest.
static MUST_USE enum err follow_peak(struct drain *drain)
{
    struct session_header *header = drain->session->header;
    struct book_blocks *blocks = drain->aggregator->blocks;
    if (blocks == NULL) {
        return ERR_OK;
    }
    // First the number, then the time: all that was allocated before that peak has an earlier one.
    const uint32_t number = shared_sum_number(&header->sum);
    if (number > blocks->seen_number) {
        const uint64_t ms = session_now_ms(header) + CLOCK_SLACK_MS;
        if (book_blocks_see_peak(blocks, number, ms)) {
            // Release: pairs with the acquire in book_is_younger.
            atomic_store_explicit(&header->seen_peak, seen_peak(number, ms), memory_order_release);
        }
    }
    return block_list_follow(blocks->list, drain->aggregator->totals.rows.peak_number);
}

// Take over the peak of the shared sum.
static MUST_USE enum err note_peak(struct drain *drain)
{
    struct shared_sum *sum = &drain->session->header->sum;
    const struct sum_value value = shared_sum_read(sum);
    // At most what there is, whatever the processes say.
    aggregator_book_peak(drain->aggregator, &value,
                         min_u64(shared_sum_error(sum, &value), value.peak_bytes));
    return follow_peak(drain);
}

// Take over the peak of a process. A session of one process has the same, but exactly.
static void note_process_peak(const struct drain *drain, uint32_t slot)
{
    struct aggregator_process *process = drain->processes[slot].aggregator;
    const int64_t most =
        atomic_load_explicit(&drain->session->words->shares[slot].most_bytes, memory_order_relaxed);
    if (process != NULL && process->book_nodes.len > 0) {
        const uint64_t peak =
            min_u64(most > 0 ? (uint64_t)most : 0, drain->aggregator->totals.peak_bytes);
        process->record.peak_bytes = drain->aggregator->processes.len == 1
                                         ? drain->aggregator->totals.peak_bytes
                                         : max_u64(process->record.peak_bytes, peak);
    }
}

// A process that exits takes its blocks out itself, and so does the image after it. These were
// there until now, so other processes may have set a peak above them: since the process was last
// found alive, and even if none of them is left.
static void
note_ghost(const struct drain *drain, const struct drain_process *process, uint64_t left_bytes)
{
    struct aggregator *aggregator = drain->aggregator;
    if (process->has_company && !process->has_next_image &&
        aggregator->totals.rows.peak_number > process->alive_number) {
        aggregator->book_ghost_bytes =
            min_u64(aggregator->book_ghost_bytes + left_bytes, aggregator->totals.peak_bytes);
    }
}

// A process whose blocks are listed as live when it ends.
struct ending {
    struct aggregator *aggregator;
    const struct aggregator_process *process;
    struct block_shares shares; // owned
    bool was_at_peak;           // it had not left the sum before the latest peak
    enum err err;
};

static void list_ending_block(void *context, const struct word_block *word)
{
    struct ending *e = context;
    if (e->err == ERR_OK) {
        e->err = book_blocks_live(e->aggregator, e->process, word, &e->shares, e->was_at_peak);
    }
}

// List the blocks that are live as a process ends. Those that were freed past the hooks are counted
// as live, so they are listed, too.
static MUST_USE enum err
list_ending(struct drain *drain, const struct aggregator_process *process, bool was_at_peak)
{
    struct aggregator *aggregator = drain->aggregator;
    if (aggregator->blocks == NULL || process->book_nodes.len == 0) {
        return ERR_OK;
    }
    struct ending ending = {
        .aggregator = aggregator, .process = process, .was_at_peak = was_at_peak};
    book_blocks_end_process(aggregator, process);
    enum err err = block_shares_of(aggregator->blocks->list, process->live_blocks, &ending.shares);
    const struct block_words_visitor visitor = {
        .context = &ending, .live = list_ending_block, .stale = list_ending_block};
    if (err == ERR_OK) {
        err = block_words_list(drain->session->memfd, SESSION_WORDS_OFFSET,
                               words_process_number(process->join_number), &visitor, NULL);
    }
    block_shares_release(&ending.shares);
    return err != ERR_OK ? err : ending.err;
}

enum err drain_books_list_running(struct drain *drain)
{
    for (uint32_t slot = 0; slot < drain->slot_count; slot++) {
        const struct aggregator_process *process = drain->processes[slot].aggregator;
        if (process != NULL && !process->is_ended) {
            TRY(list_ending(drain, process, true));
        }
    }
    return drain->aggregator->blocks != NULL ? book_blocks_end_pass(drain->aggregator, true)
                                             : ERR_OK;
}

enum err drain_books_end_process(struct drain *drain, uint32_t slot)
{
    struct words_file *words = drain->session->words;
    struct aggregator *aggregator = drain->aggregator;
    // Relaxed: its threads have ended.
    struct words_share *share = words->shares + slot;
    const int64_t left = words_share_take_bytes(share);
    add_to_sum(drain, -left);
    TRY(note_peak(drain)); // after: what others set until now counts with what the process held
    note_process_peak(drain, slot);
    atomic_store_explicit(&share->most_bytes, 0, memory_order_relaxed); // the slot's next process
    if (left > 0) {
        note_ghost(drain, drain->processes + slot, (uint64_t)left);
    }
    drain->left_number = atomic_exchange_explicit(&share->peak_number, 0, memory_order_relaxed);
    return list_ending(drain, drain->processes[slot].aggregator,
                       drain->left_number == 0 ||
                           drain->left_number >= aggregator->totals.rows.peak_number);
}

void drain_books_ended_process(const struct drain *drain, struct aggregator_process *process)
{
    if (drain->left_number != 0 && drain->left_number <= process->end_peak_number) {
        process->end_peak_number = drain->left_number;
    }
}

// Give back the numbers of rows that nothing uses any more.
static void give_rows(struct drain *drain, struct drain_process *process)
{
    struct u32_vec *unused = &process->aggregator->book_unused;
    if (unused->len > 0) {
        given_rows_add(&process->given, drain->session,
                       words_process_number(process->aggregator->join_number), unused);
        u32_vec_clear(unused);
    }
}

enum err drain_books_end_pass(struct drain *drain)
{
    for (uint32_t slot = 0; slot < drain->slot_count; slot++) {
        struct aggregator_process *process = drain->processes[slot].aggregator;
        if (process != NULL && process->debts.len > 0) {
            TRY(aggregator_book_settle(drain->aggregator, process));
        }
        if (process != NULL) {
            give_rows(drain, drain->processes + slot);
        }
    }
    TRY(note_peak(drain));
    if (drain->aggregator->blocks != NULL) {
        TRY(book_blocks_end_pass(drain->aggregator, false));
    }
    for (uint32_t slot = 0; slot < drain->slot_count; slot++) {
        note_process_peak(drain, slot);
    }
    return ERR_OK;
}

// Blocks of a process that are being listed.
struct listing {
    const struct aggregator *aggregator;
    const struct aggregator_process *process;
    uint64_t now_ms;
    struct listed_block_vec *blocks;
    bool (*goes_on)(void *context);
    void *context; // of goes_on
    enum err err;
};

static void list_block(void *context, const struct word_block *word)
{
    struct listing *l = context;
    const struct listed_block block = {
        .address = word->address,
        .size_bytes = word->size_bytes,
        .row = aggregator_book_row_of(l->process, word->row),
        .weight = (uint32_t)aggregator_book_weight(l->aggregator, l->process, word->row,
                                                   word->size_bytes),
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

static bool listing_goes_on(void *context)
{
    const struct listing *l = context;
    return l->goes_on == NULL || l->goes_on(l->context);
}

enum err drain_books_list_blocks(const struct drain *drain,
                                 const struct aggregator_process *process,
                                 bool (*goes_on)(void *context),
                                 void *context,
                                 struct listed_block_vec *out)
{
    listed_block_vec_clear(out);
    if (process->book_nodes.len == 0) {
        return ERR_OK;
    }
    struct listing listing = {.aggregator = drain->aggregator,
                              .process = process,
                              .now_ms = drain->aggregator->totals.now_ms,
                              .blocks = out,
                              .goes_on = goes_on,
                              .context = context};
    const struct block_words_visitor visitor = {
        .context = &listing, .live = list_block, .stale = pass_stale, .goes_on = listing_goes_on};
    TRY(block_words_list(drain->session->memfd, SESSION_WORDS_OFFSET,
                         words_process_number(process->join_number), &visitor, NULL));
    return listing.err;
}

// Whether some blocks were left out. Of those nothing is known.
static bool is_sampled(const struct aggregator *aggregator,
                       const struct aggregator_process *process)
{
    bool is_any = aggregator->sample_bytes != 0;
    for (size_t i = 0; i < process->book_levels.len; i++) {
        is_any = is_any || process->book_levels.items[i] != 0;
    }
    return is_any;
}

bool drain_books_had_blocks(const struct drain *drain,
                            const struct aggregator_process *process,
                            uint64_t start,
                            uint64_t end,
                            struct block_words_places **places)
{
    if (process->book_nodes.len == 0 || is_sampled(drain->aggregator, process)) {
        return true;
    }
    if (*places == NULL &&
        block_words_places_open(drain->session->memfd, SESSION_WORDS_OFFSET,
                                words_process_number(process->join_number), places) != ERR_OK) {
        return true;
    }
    return block_words_places_any(*places, start, end);
}
