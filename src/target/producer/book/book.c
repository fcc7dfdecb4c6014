// SPDX-License-Identifier: MIT
#include "target/producer/book/book.h"

#include "base/minmax.h"
#include "target/producer/book/block_records.h"
#include "target/producer/book/book_sum.h"
#include "target/producer/words/row_numbers.h"

static struct book_counter *counters_of(const struct lane_producer *p)
{
    return lane_book_tables(p->lane)->counters;
}

// Store what says which block is at the address; of row 0, only end what is stale. false: there is
// no room for it.
static bool
put_block(struct process_words *words, const struct word_block *block, struct words_ended *ended)
{
    ended->count = 0;
    const bool is_put = (LIKELY((block->address & WIRE_CUSTOM_BLOCK) == 0) ||
                         words_have_room(words, block->address, block->size_bytes)) &&
                        words_put(words, block, ended);
    if (UNLIKELY(entries_are_used(words))) {
        entries_end(words, block->address, ended);
    }
    return LIKELY(is_put) || block->row == 0 || entries_put(words, block);
}

static bool take_block(struct process_words *words, uint64_t address, struct word_block *out)
{
    return LIKELY(words_take(words, address, out)) ||
           (UNLIKELY(entries_are_used(words)) && entries_take(words, address, out));
}

static bool
settle_block(struct process_words *words, const struct word_block *block, uint32_t before)
{
    return words_settle(words, block, before) ||
           (UNLIKELY(entries_are_used(words)) && entries_settle(words, block, before));
}

void book_begin(struct lane_producer *p, struct process_words *words, uint32_t *rows)
{
    p->words = words;
    book_follow_scopes(p);
    p->tiny_below = words->tiny_below;
    p->rows = rows;
    p->lane->keeps_book = 1;
    words_share_add_thread(book_share(p));
    shared_sum_join(&p->session->sum, &p->lane->sum_part);
}

void book_follow_scopes(struct lane_producer *p)
{
    p->directory = book_is_kept(p) && p->open_scopes == 0 && !book_lists_blocks(p)
                       ? p->words->directory
                       : NULL;
}

static uint64_t birth_in_word(uint64_t time_ms, uint32_t grain_bits)
{
    return birth_code(time_ms, WORD_BIRTH_BITS(grain_bits)) << WORD_BIRTH_AT(grain_bits);
}

void book_begin_tick(struct lane_producer *p, uint64_t time_ms)
{
    p->now_ms = time_ms;
    p->slice_bits = BOOK_COHORT_BITS; // as the recording's, row_table.h
    while (time_ms >> p->slice_bits >= 1024) {
        p->slice_bits++;
    }
    p->slice_ms = time_ms >> p->slice_bits << p->slice_bits;
    p->recent_ms = min_u64(time_ms - p->slice_ms, BUCKET_TABLE - 1);
    p->recent_code = time_ms - p->recent_ms;
    if (birth_code(time_ms, WORD_BIRTH_BITS(WORDS_FINE_BITS)) != time_ms) {
        p->recent_code = UINT64_MAX; // births are not exact any more
        p->recent_ms = 0;
    }
    if (p->lane->book.has_counted == 0) {
        // Release: a recorder that sees the new time sees all records published before.
        atomic_store_explicit(&p->lane->book.sent_ms, time_ms, memory_order_release);
    }
    p->fine_birth = birth_in_word(time_ms, WORDS_FINE_BITS);
    p->middle_birth = birth_in_word(time_ms, WORDS_MIDDLE_BITS);
    p->coarse_birth = birth_in_word(time_ms, WORDS_COARSE_BITS);
}

void book_leave(const struct process_words *words, struct session_header *session, uint32_t slot)
{
    if (!process_words_are_open(words)) {
        return;
    }
    struct words_share *share = words->file->shares + slot;
    // Relaxed: R reads the number when the process has ended.
    atomic_store_explicit(&share->peak_number, shared_sum_read(&session->sum).number,
                          memory_order_relaxed);
    shared_sum_change(&session->sum, -words_share_take_bytes(share));
}

void book_leave_image(const struct process_words *words,
                      struct session_header *session,
                      uint32_t slot)
{
    if (process_words_are_open(words)) {
        shared_sum_leave(&session->sum, words_share_take_threads(words->file->shares + slot));
        book_leave(words, session, slot);
    }
}

void book_end(struct lane_producer *p)
{
    if (book_is_kept(p)) {
        (void)book_send_part(p); // its value is in the sum
        shared_sum_release(&p->session->sum, &p->lane->sum_part);
        shared_sum_leave(&p->session->sum, words_share_take_thread(book_share(p)));
    }
}

uint64_t book_interval(const struct session_header *session, uint32_t level)
{
    return max_u64(session->sample_bytes, sampling_interval(level));
}

// Forget what was counted. The counter keeps its row.
static void reset(struct book_counter *counter)
{
    for (uint32_t used = counter->sizes_used; used != 0; used &= used - 1) {
        counter->sizes[__builtin_ctz(used)] = 0;
    }
    for (uint32_t used = counter->lives_used; used != 0; used &= used - 1) {
        counter->lives[__builtin_ctz(used)] = 0;
    }
    for (uint32_t used = counter->cohorts_used; used != 0; used &= used - 1) {
        counter->cohorts[__builtin_ctz(used)] = 0;
    }
    counter->sizes_used = 0;
    counter->lives_used = 0;
    counter->cohorts_used = 0;
    counter->temporary = 0;
    counter->net_bytes = 0;
    counter->net_blocks = 0;
    counter->before_bytes = 0;
    counter->before_blocks = 0;
    book_fence();
    counter->is_sending = 0;
}

// Send what a counter has counted, and reset it.
static bool send(struct lane_producer *p, struct book_counter *counter)
{
    uint64_t record[BOOK_WORDS_MAX];
    const uint32_t words = book_record(counter, record);
    if (UNLIKELY(words == 0)) { // a handler left its first event: it has cells without a block
        reset(counter);         // so that its next event is noted as the first one
        return true;
    }
    uint64_t *to = lane_producer_reserve(p, words);
    if (UNLIKELY(to == NULL)) {
        return false;
    }
    p->lane->book.mark = p->pos + words * sizeof(*to);
    book_fence();
    counter->is_sending = 1;
    book_fence();
    __builtin_memcpy(to, record, words * sizeof(*to));
    lane_producer_advance(p, words);
    lane_producer_publish(p);
    book_fence();
    reset(counter);
    return true;
}

bool book_leave_row(struct lane_producer *p, uint32_t slot)
{
    const uint32_t row = p->rows[slot] & WORD_ROW_MAX;
    struct book_counter *counter = row != 0 ? book_find_counter(p, row) : NULL;
    if (counter != NULL && !book_is_empty(counter) && !send(p, counter)) {
        return false;
    }
    p->rows[slot] = 0;
    return true;
}

bool book_define_row(struct lane_producer *p, uint32_t slot)
{
    uint64_t *word = book_leave_row(p, slot) ? lane_producer_reserve(p, 1) : NULL;
    if (word == NULL) {
        return false;
    }
    const uint32_t row = row_numbers_take(p->words, p->row_level);
    word[0] = wire_row(slot, row, p->row_level);
    lane_producer_advance(p, 1);
    lane_producer_publish(p); // the thread may count blocks of it for long, and be killed
    p->rows[slot] = row != 0 ? row | p->row_level << WORD_ROW_BITS : 0;
    return true;
}

// Return the row of the stack in `slot` for blocks of the level of now; 0: there is none. false:
// the recording has ended.
static bool row_of(struct lane_producer *p, uint32_t slot, uint32_t *out)
{
    const uint32_t row = p->rows[slot];
    if (UNLIKELY(row == 0 || row >> WORD_ROW_BITS != p->row_level) && !book_define_row(p, slot)) {
        return false;
    }
    *out = p->rows[slot] & WORD_ROW_MAX;
    return true;
}

// Begin to count the row. NULL: the recording has ended.
static NOINLINE struct book_counter *
begin(struct lane_producer *p, struct book_counter *counter, uint32_t row)
{
    if (counter->row == 0) {
        *counter = (struct book_counter){0}; // the recorder may have emptied it
    } else if (!send(p, counter)) {
        return NULL;
    }
    counter->peak_number = shared_sum_number(&p->session->sum);
    book_fence();
    counter->row = row;
    return counter;
}

static bool is_vacant(const struct book_counter *counter)
{
    return counter->row == 0 || book_is_empty(counter);
}

// Begin to count the row in one of its places, a vacant one if there is one. NULL: the recording
// has ended.
static NOINLINE struct book_counter *begin_row(struct lane_producer *p, uint32_t row)
{
    struct book_counter *first = counters_of(p) + book_first_place(row);
    struct book_counter *second = counters_of(p) + book_second_place(row);
    return begin(p, !is_vacant(first) && is_vacant(second) ? second : first, row);
}

// Return the counter of the row, for an event after the latest peak. NULL: the recording has ended.
static struct book_counter *counter_of(struct lane_producer *p, uint32_t row)
{
    struct book_counter *counter = book_find_counter(p, row);
    counter = LIKELY(counter != NULL) ? counter : begin_row(p, row);
    if (LIKELY(counter != NULL)) {
        book_see_peak(p, counter);
    }
    return counter;
}

// After an event. `blocks`: 1 or -1. false: the recording has ended.
static bool
finish(struct lane_producer *p, struct book_counter *counter, uint64_t size_bytes, int32_t blocks)
{
    const int64_t delta = blocks * (int64_t)size_bytes;
    const uint32_t number = book_change_sum(p, counter->peak_number, delta);
    if (UNLIKELY(number > counter->peak_number)) { // since then; only this event comes after it
        counter->before_bytes = counter->net_bytes - delta;
        counter->before_blocks = counter->net_blocks - blocks;
        book_fence();
        counter->peak_number = number;
    }
    return LIKELY(p->open_scopes == 0 && size_bytes < BOOK_TRY_MAX) || send(p, counter);
}

// Send one block, which was chosen. false: the recording has ended.
static bool send_chosen(struct lane_producer *p, const struct book_counter *one, uint64_t weight)
{
    uint64_t record[BOOK_WORDS_MAX];
    const uint32_t words = book_record_weighted(one, weight, record);
    uint64_t *to = lane_producer_reserve(p, words);
    if (to == NULL) {
        return false;
    }
    __builtin_memcpy(to, record, words * sizeof(*to));
    lane_producer_advance(p, words);
    lane_producer_publish(p);
    return true;
}

static NOINLINE bool
count_chosen(struct lane_producer *p, const struct word_block *block, uint64_t weight)
{
    const uint32_t peak_number = book_change_sum(p, shared_sum_number(&p->session->sum),
                                                 (int64_t)(weight * block->size_bytes));
    struct book_counter one = {.row = block->row,
                               .peak_number = peak_number,
                               .sizes_used = 1,
                               .size_buckets = {(uint8_t)bucket_of(block->size_bytes)},
                               .sizes = {book_cell_with(0, block->size_bytes)}};
    return send_chosen(p, &one, weight) &&
           (!book_lists_blocks(p) || book_block_born(p, block, peak_number));
}

static NOINLINE bool count_chosen_freed(struct lane_producer *p,
                                        const struct word_block *block,
                                        uint64_t weight,
                                        bool is_temporary)
{
    const uint64_t life_ms = p->now_ms > block->birth_ms ? p->now_ms - block->birth_ms : 0;
    const uint64_t cell = book_cell_with(0, block->size_bytes);
    book_before_free(p);
    const uint32_t peak_number = book_change_sum(p, shared_sum_number(&p->session->sum),
                                                 -(int64_t)(weight * block->size_bytes));
    struct book_counter one = {.row = block->row,
                               .peak_number = peak_number,
                               .lives_used = 1,
                               .life_buckets = {(uint8_t)bucket_of(life_ms)},
                               .lives = {cell},
                               .temporary = is_temporary ? cell : 0};
    if (block->birth_ms < p->slice_ms) {
        const uint64_t slice = block->birth_ms >> p->slice_bits;
        one.born[0] = (uint32_t)(slice << p->slice_bits >> BOOK_COHORT_BITS);
        one.cohorts[0] = cell;
        one.cohorts_used = 1;
    }
    return send_chosen(p, &one, weight) &&
           (!book_lists_blocks(p) || book_block_freed(p, block, peak_number));
}

// Return how many blocks one of the row stands for; 0: one, and it may be counted with others.
static uint64_t weight_of(const struct lane_producer *p, uint32_t row, uint64_t size_bytes)
{
    const uint32_t level = process_words_row_level(p->words, row);
    const uint64_t weight = block_weight(size_bytes, book_interval(p->session, level));
    return weight == 1 && level == 0 ? 0 : weight;
}

static bool count_allocated(struct lane_producer *p, const struct word_block *block)
{
    const uint64_t size_bytes = block->size_bytes;
    const uint64_t weight = weight_of(p, block->row, size_bytes);
    if (UNLIKELY(weight != 0)) {
        return count_chosen(p, block, weight);
    }
    const uint32_t bucket = bucket_of(size_bytes);
    struct book_counter *counter = counter_of(p, block->row);
    uint32_t cell = counter != NULL ? book_size_cell(p, counter, bucket) : BOOK_SIZES;
    if (UNLIKELY(cell >= BOOK_SIZES)) {
        counter = counter != NULL ? begin(p, counter, block->row) : NULL;
        if (counter == NULL) {
            return false;
        }
        cell = book_size_cell(p, counter, bucket); // it is empty, so there is one
    }
    book_add_block(counter, cell, size_bytes);
    return finish(p, counter, size_bytes, 1) &&
           (!book_lists_blocks(p) || book_block_born(p, block, counter->peak_number));
}

static bool count_freed(struct lane_producer *p, const struct word_block *block, bool is_temporary)
{
    const uint64_t size_bytes = block->size_bytes;
    const uint64_t weight = weight_of(p, block->row, size_bytes);
    if (UNLIKELY(weight != 0)) {
        return count_chosen_freed(p, block, weight, is_temporary);
    }
    uint32_t cohort;
    book_before_free(p);
    struct book_counter *counter = counter_of(p, block->row);
    if (UNLIKELY(counter == NULL)) {
        return false;
    }
    uint32_t cell = book_cells_of_birth(p, counter, block->birth_ms, &cohort);
    if (UNLIKELY(cell >= BOOK_LIVES)) {
        counter = begin(p, counter, block->row);
        if (counter == NULL) {
            return false;
        }
        cell = book_cells_of_birth(p, counter, block->birth_ms, &cohort); // it is empty, likewise
    }
    if (cohort < BOOK_COHORTS) {
        counter->cohorts[cohort] = book_cell_with(counter->cohorts[cohort], size_bytes);
    }
    book_add_free(counter, cell, size_bytes, is_temporary);
    return finish(p, counter, size_bytes, -1) &&
           (!book_lists_blocks(p) || book_block_freed(p, block, counter->peak_number));
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
    p->last_allocated = 0;
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
    struct word_block block = {.address = address, .size_bytes = size_bytes, .birth_ms = p->now_ms};
    if (!row_of(p, slot, &block.row)) {
        return false;
    }
    const bool is_put = put_block(p->words, &block, &ended);
    if (UNLIKELY(!is_put || block.row == 0)) {
        lose(p);
        return count_ended(p, &ended);
    }
    if (UNLIKELY(ended.count != 0) && !count_ended(p, &ended)) {
        return false;
    }
    p->last_allocated = address;
    p->last_row = block.row;
    if (LIKELY(count_allocated(p, &block))) {
        return true;
    }
    (void)take_block(p->words, address, &block); // it counts as missed, and so its free as unknown
    return false;
}

void book_pass(struct lane_producer *p, uint64_t address, uint64_t size_bytes)
{
    struct words_ended ended;
    const struct word_block block = {.address = address, .size_bytes = size_bytes};
    forget_latest(p);
    (void)put_block(p->words, &block, &ended); // it only ends
    (void)count_ended(p, &ended);              // if false, the next event fails, too
}

struct word_block book_take(struct process_words *words, uint64_t address)
{
    struct word_block block;
    return take_block(words, address, &block) ? block : (struct word_block){.address = address};
}

void book_put_back(struct process_words *words, const struct word_block *block)
{
    struct words_ended ended;
    if (block->row != 0) {
        (void)put_block(words, block, &ended); // it was there, so its region or its entry is
    }
}

bool book_count_freed(struct lane_producer *p, const struct word_block *block)
{
    // Another thread may have freed the latest block and got its address again.
    const bool is_temporary = p->last_allocated == block->address && p->last_row == block->row;
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

void book_put_later(struct process_words *words, uint64_t address, uint64_t size_bytes)
{
    struct words_ended ended;
    const struct word_block block = {
        .address = address, .size_bytes = size_bytes, .row = BOOK_ROW_LATER};
    (void)put_block(words, &block, &ended);
}

bool book_allocate_later(struct lane_producer *p,
                         uint64_t address,
                         uint64_t size_bytes,
                         uint32_t slot)
{
    struct word_block block = {.address = address, .size_bytes = size_bytes, .birth_ms = p->now_ms};
    if (!row_of(p, slot, &block.row)) {
        return false;
    }
    if (block.row == 0) {
        lose(p);
        return true;
    }
    if (settle_block(p->words, &block, BOOK_ROW_LATER)) {
        p->last_allocated = address;
        p->last_row = block.row;
        return count_allocated(p, &block);
    }
    forget_latest(p);
    return count_allocated(p, &block) && count_freed(p, &block, false);
}

bool book_is_due(const struct lane_producer *p, uint64_t time_ms)
{
    // Relaxed: our own.
    return time_ms >=
           BOOK_HOLD_MS + atomic_load_explicit(&p->lane->book.sent_ms, memory_order_relaxed);
}

bool book_send_all(struct lane_producer *p)
{
    if (p->lane->book.has_counted == 0) {
        return true;
    }
    (void)book_send_part(p); // before the records, which may have the number of its peak
    uint64_t *used = p->lane->book.used;
    for (size_t i = 0; i < BOOK_COUNTERS / 64; i++) {
        for (; used[i] != 0; used[i] &= used[i] - 1) {
            struct book_counter *counter = counters_of(p) + i * 64 + __builtin_ctzll(used[i]);
            if (counter->row != 0 && !send(p, counter)) {
                return false;
            }
        }
    }
    p->lane->book.has_counted = 0;
    return true;
}

void book_recover(struct lane_producer *p)
{
    const bool is_sent = p->pos >= p->lane->book.mark;
    struct sum_part *part = &p->lane->sum_part;
    // No other counter is touched: a read would make the kernel provide its page.
    for (uint32_t i = 0; i < BOOK_COUNTERS / 64; i++) {
        for (uint64_t used = p->lane->book.used[i]; used != 0; used &= used - 1) {
            struct book_counter *counter = counters_of(p) + (size_t)i * 64 + __builtin_ctzll(used);
            if (counter->is_sending != 0) {
                counter->row = is_sent ? 0 : counter->row;
                counter->is_sending = 0;
            }
        }
    }
    if (part->is_sending != 0) {
        shared_sum_doubt(&p->session->sum, part);
        part->unsent_bytes = 0;
        part->is_sending = 0;
    }
    forget_latest(p);
}
