// SPDX-License-Identifier: MIT
// book_cells: where a thread counts an event in its book (session/books/book_layout.h).
//
// Each function takes part in an event of the thread: the counter of the row, the cell of a size or
// of a lifetime, then the event itself. A cell that is used for the first time is marked before it
// counts. Without a counter or a cell with room the caller sends the counter and begins anew
// (book.c), or leaves the event to one that does (book_try.h). No function makes a call.
// Context: T, as book.h.
#pragma once

#include "target/producer/book/book.h"

// Larger blocks are sent at once. So cells that count others never run out of bytes.
#define BOOK_TRY_MAX ((uint64_t)1 << 30)
_Static_assert(BOOK_TRY_MAX <= BOOK_BYTES_MAX / 2 / BOOK_COUNT_MAX, "and half of them stays free");

// Return the counter of the row if there is one.
ALWAYS_INLINE struct book_counter *book_find_counter(const struct lane_producer *p, uint32_t row)
{
    struct book_counter *counters = lane_book_tables(p->lane)->counters;
    struct book_counter *counter = counters + book_first_place(row);
    if (UNLIKELY(counter->row != row)) {
        counter = counters + book_second_place(row);
    }
    return LIKELY(counter->row == row) ? counter : NULL;
}

// Keep the compiler from moving stores across: a reader that comes after this thread was killed
// sees them in this order.
ALWAYS_INLINE void book_fence(void)
{
    atomic_signal_fence(memory_order_seq_cst);
}

// Before an event: separate the ones so far from those after a newer peak. The number may be an
// older one: a thread that was alone stores it late (shared_sum_try_peak).
ALWAYS_INLINE void book_see_peak(const struct lane_producer *p, struct book_counter *counter)
{
    const uint32_t number = shared_sum_number(&p->session->sum);
    if (UNLIKELY(counter->peak_number < number)) {
        counter->before_bytes = counter->net_bytes;
        counter->before_blocks = counter->net_blocks;
        book_fence();
        counter->peak_number = number;
    }
}

// The counter is about to count its first event.
ALWAYS_INLINE void book_use(struct lane_producer *p, const struct book_counter *counter)
{
    if (book_is_empty(counter)) {
        const size_t index = (size_t)(counter - lane_book_tables(p->lane)->counters);
        p->lane->book.used[index / 64] |= (uint64_t)1 << index % 64;
        p->lane->book.has_counted = 1;
        book_fence();
    }
}

// Whether a cell has no block yet, or as many as it may have.
ALWAYS_INLINE bool book_is_at_end(uint64_t cell, uint32_t count_max)
{
    return (uint16_t)(cell - 1) >= (uint16_t)(count_max - 1);
}

// Return the number of the cell of a size; at least BOOK_SIZES: it has none.
ALWAYS_INLINE uint32_t book_size_cell(struct lane_producer *p,
                                      struct book_counter *counter,
                                      uint32_t bucket)
{
    uint32_t i = bucket % BOOK_SIZES_FIRST;
    if (LIKELY(counter->size_buckets[i] == bucket) &&
        LIKELY(!book_is_at_end(counter->sizes[i], BOOK_COUNT_MAX))) {
        return i;
    }
    if (counter->sizes[i] != 0 && counter->size_buckets[i] != bucket) {
        i = BOOK_SIZES_FIRST + bucket % (BOOK_SIZES - BOOK_SIZES_FIRST);
        if (counter->size_buckets[i] == bucket &&
            !book_is_at_end(counter->sizes[i], BOOK_COUNT_MAX)) {
            return i;
        }
    }
    if (counter->sizes[i] != 0) {
        return BOOK_SIZES;
    }
    book_use(p, counter);
    counter->size_buckets[i] = (uint8_t)bucket;
    counter->sizes_used |= 1u << i;
    book_fence();
    return i;
}

// Return the number of the cell of a lifetime; at least BOOK_LIVES: it has none. A cell that is
// taken by another bucket leads to the next one.
ALWAYS_INLINE uint32_t book_life_cell(struct lane_producer *p,
                                      struct book_counter *counter,
                                      uint32_t bucket)
{
    uint32_t i = bucket % BOOK_LIVES;
    if (LIKELY(counter->life_buckets[i] == bucket) &&
        LIKELY(!book_is_at_end(counter->lives[i], BOOK_LIFE_COUNT_MAX))) {
        return i;
    }
    for (uint32_t looks = 0; counter->lives[i] != 0; i = (i + 1) % BOOK_LIVES) {
        if (counter->life_buckets[i] == bucket) {
            return book_is_at_end(counter->lives[i], BOOK_LIFE_COUNT_MAX) ? BOOK_LIVES : i;
        }
        if (++looks == BOOK_LIVES) {
            return BOOK_LIVES;
        }
    }
    book_use(p, counter);
    counter->life_buckets[i] = (uint8_t)bucket;
    counter->lives_used |= (uint8_t)(1u << i);
    book_fence();
    return i;
}

// Return the number of the cell of a cohort of blocks born in an earlier slice; at least
// BOOK_COHORTS: it has none. A cell that is taken by another slice leads to the next one.
ALWAYS_INLINE uint32_t book_cohort_cell(const struct lane_producer *p,
                                        struct book_counter *counter,
                                        uint64_t birth_ms)
{
    const uint64_t slice = birth_ms >> p->slice_bits;
    const uint32_t born = (uint32_t)(slice << p->slice_bits >> BOOK_COHORT_BITS);
    uint32_t i = slice % BOOK_COHORTS;
    for (uint32_t looks = 0; counter->cohorts[i] != 0; i = (i + 1) % BOOK_COHORTS) {
        if (counter->born[i] == born) {
            return book_is_at_end(counter->cohorts[i], BOOK_COUNT_MAX) ? BOOK_COHORTS : i;
        }
        if (++looks == BOOK_COHORTS) {
            return BOOK_COHORTS;
        }
    }
    counter->born[i] = born;
    counter->cohorts_used |= (uint8_t)(1u << i);
    book_fence();
    return i;
}

ALWAYS_INLINE void
book_add_block(struct book_counter *counter, uint32_t size_cell, uint64_t size_bytes)
{
    counter->sizes[size_cell] = book_cell_with(counter->sizes[size_cell], size_bytes);
    counter->net_bytes += (int64_t)size_bytes;
    counter->net_blocks++;
}

ALWAYS_INLINE void book_add_free(struct book_counter *counter,
                                 uint32_t life_cell,
                                 uint64_t size_bytes,
                                 bool is_temporary)
{
    counter->lives[life_cell] = book_cell_with(counter->lives[life_cell], size_bytes);
    if (is_temporary) {
        counter->temporary = book_cell_with(counter->temporary, size_bytes);
    }
    counter->net_bytes -= (int64_t)size_bytes;
    counter->net_blocks--;
}

// Return the number of the cell of the lifetime of a block that was born then; at least BOOK_LIVES:
// there is no room. *cohort becomes the number of the cell of its cohort; at least BOOK_COHORTS: it
// needs none.
ALWAYS_INLINE uint32_t book_cells_of_birth(struct lane_producer *p,
                                           struct book_counter *counter,
                                           uint64_t birth_ms,
                                           uint32_t *cohort)
{
    const uint64_t life_ms = p->now_ms > birth_ms ? p->now_ms - birth_ms : 0;
    const uint32_t i = book_life_cell(p, counter, bucket_of(life_ms));
    *cohort = BOOK_COHORTS;
    if (birth_ms < p->slice_ms) {
        *cohort = book_cohort_cell(p, counter, birth_ms);
        return *cohort < BOOK_COHORTS ? i : BOOK_LIVES;
    }
    return i;
}
