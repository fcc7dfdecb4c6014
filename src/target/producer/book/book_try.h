// SPDX-License-Identifier: MIT
// book_try: the common cases of book.h, for hooks that make no call in them.
//
// The common case: a block of less than 256 bytes of glibc's malloc, among blocks of that kind; its
// row has a counter; the tick, the peak and the batch of the sum are as before. Each function
// either handles an event completely, or changes nothing and returns false. Context: T, as book.h,
// and nursery_try_now() was true.
#pragma once

#include "target/producer/book/book.h"

// The note of 4,096 bytes of address in which all blocks so far have had words in `fine`.
#define BOOK_PAGE_FINE 0x00010000u

// The place of a word of `fine`, and what it has.
struct book_place {
    _Atomic uint64_t *word;
    uint64_t seen;
};

// Find the fine word of an address, if no other table needs a look. false: they do.
ALWAYS_INLINE bool
book_try_find(const struct lane_producer *p, uint64_t address, struct book_place *out)
{
    if (UNLIKELY((address >> WORDS_ADDRESS_BITS) != 0) || UNLIKELY(address % 16 != 0) ||
        UNLIKELY(p->open_scopes != 0)) {
        return false;
    }
    // Relaxed: as in process_words_find.
    struct words_region *region =
        atomic_load_explicit(p->directory + (address >> WORDS_REGION_BITS), memory_order_relaxed);
    if (UNLIKELY(region == NULL)) {
        return false;
    }
    const uint64_t place = address % WORDS_REGION_BYTES;
    uint32_t note;
    __builtin_memcpy(&note, region->pages + (place >> WORDS_COARSE_BITS), sizeof(note));
    if (UNLIKELY(note != BOOK_PAGE_FINE)) {
        return false;
    }
    out->word = region->fine + (place >> WORDS_FINE_BITS);
    out->seen = word_load(out->word);
    return true;
}

// Whether the thread's part of the sum may change by so much without being added, and is not at a
// peak that a free would end.
ALWAYS_INLINE bool book_try_sum(const struct lane_producer *p, int64_t delta_bytes)
{
    const struct sum_part *part = &p->lane->sum_part;
    return (delta_bytes >= 0 || LIKELY(part->unsent_bytes <= part->room_bytes)) &&
           shared_sum_may_keep(&p->session->sum, part->unsent_bytes + delta_bytes);
}

// Return the counter of the row if there is one, and it counts events since the latest peak.
ALWAYS_INLINE struct book_counter *book_try_counter(const struct lane_producer *p, uint32_t row)
{
    struct book_counter *counters = lane_book_tables(p->lane)->counters;
    struct book_counter *counter = counters + book_first_place(row);
    if (UNLIKELY(counter->row != row)) {
        counter = counters + book_second_place(row);
    }
    return LIKELY(counter->row == row) &&
                   LIKELY(counter->peak_number == shared_sum_number(&p->session->sum))
               ? counter
               : NULL;
}

// Count an allocated block; `slot` names its stack.
ALWAYS_INLINE bool
book_try_allocate(struct lane_producer *p, uint64_t address, uint64_t size_bytes, uint32_t slot)
{
    struct nursery *n = &p->lane->nursery;
    struct book_place place;
    if (UNLIKELY(size_bytes >= 1u << WORDS_MIDDLE_BITS) || !book_try_find(p, address, &place) ||
        UNLIKELY(place.seen != 0) || UNLIKELY(p->tiny_below_bytes != 0)) {
        return false;
    }
    const uint32_t row = p->rows[slot];
    struct book_counter *counter = book_try_counter(p, row);
    const uint32_t bucket = bucket_table[size_bytes];
    if (UNLIKELY(counter == NULL) || !book_try_sum(p, (int64_t)size_bytes)) {
        return false;
    }
    const uint64_t cell = counter->sizes[bucket % BOOK_SIZES];
    if (UNLIKELY(counter->size_buckets[bucket % BOOK_SIZES] != bucket) || UNLIKELY(cell == 0) ||
        UNLIKELY(book_cell_count(cell) == BOOK_COUNT_MAX)) {
        return false;
    }
    word_store(place.word, (uint64_t)row << WORD_ROW_AT | p->fine_birth |
                               size_bytes << WORD_START_BITS_OF(WORDS_FINE_BITS) |
                               (address / 8 & 3));
    atomic_signal_fence(memory_order_seq_cst);
    counter->sizes[bucket % BOOK_SIZES] = book_cell_with(cell, size_bytes);
    p->lane->sum_part.unsent_bytes += (int64_t)size_bytes;
    n->hold_count++;
    n->last_allocated = address;
    p->last_row = row;
    return true;
}

// Count the free of a block, before the allocator is called.
ALWAYS_INLINE bool book_try_free(struct lane_producer *p, uint64_t address)
{
    struct nursery *n = &p->lane->nursery;
    struct book_place place;
    if (!book_try_find(p, address, &place) ||
        UNLIKELY(!word_is_at(place.seen, address, WORDS_FINE_BITS))) {
        return false;
    }
    const uint32_t row = word_row(place.seen);
    const uint64_t size_bytes = word_size(place.seen, WORDS_FINE_BITS);
    struct book_counter *counter = book_try_counter(p, row);
    // Of blocks that were born in this slice, births are exact.
    const uint64_t life_ms = p->now_ms - word_birth_ms_exact(place.seen);
    if (UNLIKELY(counter == NULL) || UNLIKELY(life_ms > p->slice_age_ms) ||
        !book_try_sum(p, -(int64_t)size_bytes)) {
        return false;
    }
    const uint32_t bucket = bucket_table[life_ms];
    const uint32_t i = bucket % BOOK_LIVES;
    const uint64_t cell = counter->lives[i];
    const bool is_temporary = n->last_allocated == address && p->last_row == row;
    if (UNLIKELY(counter->life_buckets[i] != bucket) || UNLIKELY(cell == 0) ||
        UNLIKELY(book_cell_count(cell) == BOOK_COUNT_MAX) ||
        UNLIKELY(book_cell_count(counter->temporary) == BOOK_COUNT_MAX)) {
        return false;
    }
    word_store(place.word, 0);
    atomic_signal_fence(memory_order_seq_cst);
    counter->lives[i] = book_cell_with(cell, size_bytes);
    if (is_temporary) {
        counter->temporary = book_cell_with(counter->temporary, size_bytes);
    }
    p->lane->sum_part.unsent_bytes -= (int64_t)size_bytes;
    n->hold_count++;
    n->last_allocated = 0;
    return true;
}
