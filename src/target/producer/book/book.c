// SPDX-License-Identifier: MIT
#include "target/producer/book/book.h"

// Keep the compiler from moving stores across, as nursery_fence.
static void fence(void)
{
    atomic_signal_fence(memory_order_seq_cst);
}

static struct book_counter *counters_of(const struct lane_producer *p)
{
    return lane_book_tables(p->lane)->counters;
}

// Return the time of birth as cohorts state it: the beginning of the recording's slice.
static uint32_t slice_of(uint64_t born_ms, uint64_t at_ms)
{
    uint32_t bits = BOOK_COHORT_BITS;
    while (at_ms >> bits >= 1024) {
        bits++;
    }
    return (uint32_t)(born_ms >> bits << bits >> BOOK_COHORT_BITS);
}

static struct words_share *share_of(const struct lane_producer *p)
{
    return p->words->file->shares + p->lane->process_index;
}

void book_begin(struct lane_producer *p, struct process_words *words, uint32_t *rows)
{
    p->words = words;
    p->directory = words->directory;
    p->tiny_below_bytes = words->tiny_below_bytes;
    p->rows = rows;
    p->lane->nursery.is_holding = 0;
    p->lane->keeps_book = 1;
    words_share_add_thread(share_of(p));
    shared_sum_join(&p->session->sum, &p->lane->sum_part);
}

void book_begin_tick(struct lane_producer *p, uint64_t time_ms)
{
    const uint64_t slice_ms = (uint64_t)slice_of(time_ms, time_ms) << BOOK_COHORT_BITS;
    const uint64_t age_ms = time_ms - slice_ms;
    p->now_ms = time_ms;
    p->slice_age_ms = age_ms < BUCKET_TABLE ? age_ms : BUCKET_TABLE - 1;
    if (p->lane->nursery.hold_count == 0) {
        // Release: a recorder that sees the new time sees all records published before.
        atomic_store_explicit(&p->lane->book_since_ms, time_ms, memory_order_release);
    }
    p->fine_birth = birth_code(time_ms, WORD_BIRTH_BITS(WORDS_FINE_BITS))
                    << WORD_BIRTH_AT(WORDS_FINE_BITS);
}

// Add the thread's part to the sum, and to what its process has there.
static NOINLINE void send_part(struct lane_producer *p)
{
    words_share_add(share_of(p), p->lane->sum_part.unsent_bytes);
    (void)shared_sum_send(&p->session->sum, &p->lane->sum_part); // its value is in the sum
}

ALWAYS_INLINE void change_sum(struct lane_producer *p, int64_t delta_bytes)
{
    struct sum_part *part = &p->lane->sum_part;
    part->unsent_bytes += delta_bytes;
    if (!shared_sum_may_keep(&p->session->sum, part->unsent_bytes)) {
        send_part(p);
    }
}

void book_leave(const struct process_words *words, struct session_header *session, uint32_t slot)
{
    if (words->directory == NULL) {
        return;
    }
    struct words_share *share = words->file->shares + slot;
    // Relaxed: R reads the number when the process has ended.
    atomic_store_explicit(&share->peak_number, shared_sum_read(&session->sum).number,
                          memory_order_relaxed);
    struct sum_part part = {.unsent_bytes = -words_share_take_bytes(share),
                            .room_bytes = SUM_NOT_ALONE};
    (void)shared_sum_send(&session->sum, &part); // as above
}

void book_leave_image(const struct process_words *words,
                      struct session_header *session,
                      uint32_t slot)
{
    if (words->directory != NULL) {
        shared_sum_leave(&session->sum, words_share_take_threads(words->file->shares + slot));
        book_leave(words, session, slot);
    }
}

void book_end(struct lane_producer *p)
{
    if (book_is_kept(p)) {
        send_part(p);
        shared_sum_leave(&p->session->sum, words_share_take_thread(share_of(p)));
    }
}

bool book_define_row(struct lane_producer *p, uint32_t slot)
{
    uint64_t *word = lane_producer_reserve(p, 1);
    if (word == NULL) {
        return false;
    }
    const uint32_t row = process_words_new_row(p->words);
    p->rows[slot] = row;
    if (row != 0) {
        word[0] = wire_word(WIRE_ROW, slot | (uint64_t)row << WIRE_SLOT_BITS);
        lane_producer_advance(p, 1);
    }
    return true; // its caller publishes
}

// Send a counter, and make it unused.
static bool send(struct lane_producer *p, struct book_counter *counter)
{
    struct nursery *n = &p->lane->nursery;
    uint64_t record[BOOK_WORDS_MAX];
    const uint32_t words = book_record(counter, record);
    uint64_t *to = words != 0 ? lane_producer_reserve(p, words) : NULL;
    if (UNLIKELY(to == NULL)) {
        counter->row = words == 0 ? 0 : counter->row;
        return words == 0;
    }
    n->mark = p->pos + words * sizeof(*to);
    fence();
    counter->is_sending = 1;
    fence();
    __builtin_memcpy(to, record, words * sizeof(*to));
    lane_producer_advance(p, words);
    lane_producer_publish(p);
    fence();
    counter->row = 0;
    return true;
}

// Begin to count the row.
static void claim(struct lane_producer *p, struct book_counter *counter, uint32_t row)
{
    const size_t index = (size_t)(counter - counters_of(p));
    p->lane->nursery.counters_used[index / 64] |= (uint64_t)1 << index % 64;
    *counter = (struct book_counter){.peak_number = shared_sum_number(&p->session->sum)};
    fence();
    counter->row = row;
    fence();
}

// Send what the counter has, and begin to count the row in it. NULL: the recording has ended.
static NOINLINE struct book_counter *
begin(struct lane_producer *p, struct book_counter *counter, uint32_t row)
{
    if (counter->row != 0 && !send(p, counter)) {
        return NULL;
    }
    claim(p, counter, row);
    return counter;
}

// Begin to count the row in one of its places, a free one if there is one. NULL: the recording has
// ended.
static NOINLINE struct book_counter *begin_row(struct lane_producer *p, uint32_t row)
{
    struct book_counter *first = counters_of(p) + book_first_place(row);
    struct book_counter *second = counters_of(p) + book_second_place(row);
    return begin(p, first->row != 0 && second->row == 0 ? second : first, row);
}

// Return the counter of the row. NULL: the recording has ended.
ALWAYS_INLINE struct book_counter *counter_of(struct lane_producer *p, uint32_t row)
{
    struct book_counter *counter = counters_of(p) + book_first_place(row);
    if (UNLIKELY(counter->row != row)) {
        counter = counters_of(p) + book_second_place(row);
        if (counter->row != row) {
            return begin_row(p, row);
        }
    }
    return counter;
}

// Separate the events so far from those after a newer peak.
static NOINLINE void separate(struct book_counter *counter, uint32_t number)
{
    const struct book_net net = book_net_of(counter);
    counter->before_bytes = net.bytes;
    counter->before_blocks = net.blocks;
    fence();
    counter->peak_number = number;
}

ALWAYS_INLINE void see_peak(struct lane_producer *p, struct book_counter *counter)
{
    const uint32_t number = shared_sum_number(&p->session->sum);
    if (UNLIKELY(counter->peak_number != number)) {
        separate(counter, number);
    }
}

// Count a block in the cell of its bucket. false: it has no room, or is of another bucket.
ALWAYS_INLINE bool
count_in(uint64_t *cell, uint8_t *cell_bucket, uint32_t bucket, uint64_t size_bytes)
{
    const uint64_t before = *cell;
    if (before == 0) {
        *cell_bucket = (uint8_t)bucket;
        fence();
    } else if (UNLIKELY(*cell_bucket != bucket) ||
               UNLIKELY(!book_cell_has_room(before, size_bytes))) {
        return false;
    }
    *cell = book_cell_with(before, size_bytes);
    return true;
}

ALWAYS_INLINE bool count_size(struct book_counter *counter, uint64_t size_bytes)
{
    const uint32_t bucket = bucket_of(size_bytes);
    const uint32_t i = bucket % BOOK_SIZES;
    return count_in(counter->sizes + i, counter->size_buckets + i, bucket, size_bytes);
}

ALWAYS_INLINE void note_event(struct lane_producer *p)
{
    p->lane->nursery.hold_count++;
}

ALWAYS_INLINE bool count_allocated(struct lane_producer *p, uint32_t row, uint64_t size_bytes)
{
    struct book_counter *counter = counter_of(p, row);
    if (UNLIKELY(counter == NULL)) {
        return false;
    }
    see_peak(p, counter);
    if (UNLIKELY(!count_size(counter, size_bytes))) {
        counter = begin(p, counter, row);
        if (counter == NULL) {
            return false;
        }
        (void)count_size(counter, size_bytes); // it is empty
    }
    note_event(p);
    change_sum(p, (int64_t)size_bytes);
    return LIKELY(p->open_scopes == 0) || send(p, counter);
}

// Count a free in the cohort of its birth. false: no cell has room.
static bool count_cohort(struct book_counter *counter, uint32_t born, uint64_t size_bytes)
{
    for (uint32_t i = 0; i < BOOK_COHORTS; i++) {
        if (counter->cohorts[i] == 0) {
            counter->born[i] = born;
            fence();
        } else if (counter->born[i] != born) {
            continue;
        }
        if (!book_cell_has_room(counter->cohorts[i], size_bytes)) {
            return false;
        }
        counter->cohorts[i] = book_cell_with(counter->cohorts[i], size_bytes);
        return true;
    }
    return false;
}

// Count a block in its cohort if it was born in an earlier slice. false: there is no room.
static NOINLINE bool
count_older(struct book_counter *counter, const struct word_block *block, uint64_t at_ms)
{
    const uint32_t born = slice_of(block->birth_ms, at_ms);
    return born == slice_of(at_ms, at_ms) || count_cohort(counter, born, block->size_bytes);
}

// Count the free in one counter. false: it has no room.
ALWAYS_INLINE bool count_life(struct lane_producer *p,
                              struct book_counter *counter,
                              const struct word_block *block,
                              uint64_t at_ms)
{
    const uint64_t size_bytes = block->size_bytes;
    const uint64_t life_ms = at_ms > block->birth_ms ? at_ms - block->birth_ms : 0;
    const uint32_t bucket = bucket_of(life_ms);
    const uint32_t i = bucket % BOOK_LIVES;
    see_peak(p, counter);
    if (UNLIKELY(life_ms != 0) && !count_older(counter, block, at_ms)) {
        return false;
    }
    return count_in(counter->lives + i, counter->life_buckets + i, bucket, size_bytes);
}

ALWAYS_INLINE bool
count_freed(struct lane_producer *p, const struct word_block *block, bool is_temporary)
{
    const uint64_t at_ms = p->now_ms;
    shared_sum_before_free(&p->session->sum, &p->lane->sum_part);
    struct book_counter *counter = counter_of(p, block->row);
    if (UNLIKELY(counter == NULL)) {
        return false;
    }
    if (UNLIKELY(!book_cell_has_room(counter->temporary, block->size_bytes) ||
                 !count_life(p, counter, block, at_ms))) {
        counter = begin(p, counter, block->row);
        if (counter == NULL) {
            return false;
        }
        (void)count_life(p, counter, block, at_ms); // it is empty
    }
    if (is_temporary) {
        counter->temporary = book_cell_with(counter->temporary, block->size_bytes);
    }
    note_event(p);
    change_sum(p, -(int64_t)block->size_bytes);
    return LIKELY(p->open_scopes == 0) || send(p, counter);
}

// Count the blocks that were freed past the hooks.
static NOINLINE bool count_ended(struct lane_producer *p, const struct words_ended *ended)
{
    bool is_counted = true;
    for (uint32_t i = 0; i < ended->count; i++) {
        is_counted = is_counted && (ended->blocks[i].row == BOOK_ROW_LATER ||
                                    count_freed(p, &ended->blocks[i], false));
    }
    return is_counted;
}

ALWAYS_INLINE void forget_latest(struct lane_producer *p)
{
    p->lane->nursery.last_allocated = 0;
}

// A block without a row or a word is not recorded.
static NOINLINE void lose(struct lane_producer *p)
{
    session_count(p->session, LOST_no_words, 1);
    forget_latest(p);
}

bool book_allocate(struct lane_producer *p, uint64_t address, uint64_t size_bytes, uint32_t slot)
{
    struct words_ended ended;
    const struct word_block block = {
        .address = address, .size_bytes = size_bytes, .birth_ms = p->now_ms, .row = p->rows[slot]};
    const bool is_put = words_put(p->words, &block, &ended);
    if (UNLIKELY(!is_put || block.row == 0)) {
        lose(p);
        return count_ended(p, &ended);
    }
    if (UNLIKELY(ended.count != 0) && !count_ended(p, &ended)) {
        return false;
    }
    p->lane->nursery.last_allocated = address;
    p->last_row = block.row;
    return count_allocated(p, block.row, size_bytes);
}

void book_pass(struct lane_producer *p, uint64_t address, uint64_t size_bytes)
{
    struct words_ended ended;
    const struct word_block block = {.address = address, .size_bytes = size_bytes};
    forget_latest(p);
    (void)words_put(p->words, &block, &ended); // without a region there is nothing to end
    (void)count_ended(p, &ended);              // if false, the next event fails, too
}

struct word_block book_take(const struct process_words *words, uint64_t address)
{
    struct word_block block;
    return words_take(words, address, &block) ? block : (struct word_block){.address = address};
}

void book_put_back(struct process_words *words, const struct word_block *block)
{
    struct words_ended ended;
    if (block->row != 0) {
        (void)words_put(words, block, &ended); // it was there, so its region is
    }
}

bool book_count_freed(struct lane_producer *p, const struct word_block *block)
{
    // Another thread may have freed the latest block and got its address again.
    const bool is_temporary =
        p->lane->nursery.last_allocated == block->address && p->last_row == block->row;
    forget_latest(p);
    if (UNLIKELY(block->row == 0)) {
        // Relaxed: our own; the recorder reads it now and then.
        atomic_store_explicit(&p->lane->unknown_frees,
                              atomic_load_explicit(&p->lane->unknown_frees, memory_order_relaxed) +
                                  1,
                              memory_order_relaxed);
        return true;
    }
    return block->row == BOOK_ROW_LATER || count_freed(p, block, is_temporary);
}

bool book_free(struct lane_producer *p, uint64_t address)
{
    const struct word_block block = book_take(p->words, address);
    return book_count_freed(p, &block);
}

bool book_admits_custom(const struct lane_producer *p, uint64_t address, uint64_t size_bytes)
{
    if (p->given_stamp != 0) {
        return p->given_stamp == BOOK_GIVEN_LATER;
    }
    return words_have_room(p->words, address, size_bytes);
}

bool book_has_custom(const struct lane_producer *p, uint64_t address)
{
    return words_have(p->words, address);
}

void book_put_later(struct process_words *words, uint64_t address, uint64_t size_bytes)
{
    struct words_ended ended;
    const struct word_block block = {
        .address = address, .size_bytes = size_bytes, .row = BOOK_ROW_LATER};
    (void)words_put(words, &block, &ended);
}

bool book_allocate_later(struct lane_producer *p,
                         uint64_t address,
                         uint64_t size_bytes,
                         uint32_t slot)
{
    struct word_block block = {
        .address = address, .size_bytes = size_bytes, .birth_ms = p->now_ms, .row = p->rows[slot]};
    if (block.row == 0) {
        lose(p);
        return true;
    }
    if (words_settle(p->words, &block, BOOK_ROW_LATER)) {
        p->lane->nursery.last_allocated = address;
        p->last_row = block.row;
        return count_allocated(p, block.row, size_bytes);
    }
    forget_latest(p);
    return count_allocated(p, block.row, size_bytes) && count_freed(p, &block, false);
}

bool book_is_due(const struct lane_producer *p, uint64_t time_ms)
{
    // Relaxed: our own.
    return time_ms >=
           BOOK_HOLD_MS + atomic_load_explicit(&p->lane->book_since_ms, memory_order_relaxed);
}

bool book_send_all(struct lane_producer *p)
{
    send_part(p); // before the records, which may have the number of its peak
    uint64_t *used = p->lane->nursery.counters_used;
    for (size_t i = 0; i < BOOK_COUNTERS / 64; i++) {
        for (; used[i] != 0; used[i] &= used[i] - 1) {
            struct book_counter *counter = counters_of(p) + i * 64 + __builtin_ctzll(used[i]);
            if (counter->row != 0 && !send(p, counter)) {
                return false;
            }
        }
    }
    p->lane->nursery.hold_count = 0;
    return true;
}

void book_recover(struct lane_producer *p)
{
    const bool is_sent = p->pos >= p->lane->nursery.mark;
    for (uint32_t i = 0; i < BOOK_COUNTERS; i++) {
        struct book_counter *counter = counters_of(p) + i;
        if (counter->row != 0) {
            counter->row = counter->is_sending != 0 && is_sent ? 0 : counter->row;
            counter->is_sending = 0;
            p->lane->nursery.counters_used[i / 64] |= (uint64_t)1 << i % 64;
        }
    }
    forget_latest(p);
}
