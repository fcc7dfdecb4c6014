// SPDX-License-Identifier: MIT
// book_try: the common cases of book.h, for hooks that make no call in them.
//
// The common case: a block whose place has no stale word, in 4,096 bytes where blocks of its table
// have been before; its row has a counter with room; the tick and the batch of the sum are as
// before. Each function either handles an event completely, or changes nothing that book.c would
// not change for the same event, and returns false. Context: T, as book.h; the clock has not moved,
// and p->directory is not NULL.
#pragma once

#include "target/producer/book/book_cells.h"

// The notes of 4,096 bytes of address in which blocks of one table have been.
#define BOOK_NOTE_COARSE 0x00000001u
#define BOOK_NOTE_MIDDLE 0x00000100u
#define BOOK_NOTE_FINE   0x00010000u
#define BOOK_NOTE_GONE   0x00020202u // of any table
_Static_assert(WORDS_NOTE_HAD == 1 && WORDS_NOTE_GONE == 2, "bits of the bytes of a words_page");

// Where the words of an address are.
struct book_at {
    struct words_region *region;
    uint64_t place; // in the region
    uint32_t note;
};

// Find the words of an address. false: it has no region.
ALWAYS_INLINE bool
book_try_find(_Atomic(struct words_region *) *directory, uint64_t address, struct book_at *out)
{
    // Rotated, so that it is too large if it is not a multiple of 8, or beyond the last region.
    const uint64_t rotated = address >> 3 | address << 61;
    if (UNLIKELY(rotated >> (WORDS_ADDRESS_BITS - 3) != 0)) {
        return false;
    }
    // Relaxed: as in process_words_find.
    out->region =
        atomic_load_explicit(directory + (address >> WORDS_REGION_BITS), memory_order_relaxed);
    if (UNLIKELY(out->region == NULL)) {
        return false;
    }
    out->place = address % WORDS_REGION_BYTES;
    __builtin_memcpy(&out->note, out->region->pages + (out->place >> WORDS_COARSE_BITS),
                     sizeof(out->note));
    return true;
}

ALWAYS_INLINE _Atomic uint64_t *book_coarse_of(const struct book_at *at)
{
    return at->region->coarse + (at->place >> WORDS_COARSE_BITS);
}

ALWAYS_INLINE _Atomic uint64_t *book_middle_of(const struct book_at *at)
{
    return at->region->middle + (at->place >> WORDS_MIDDLE_BITS);
}

ALWAYS_INLINE _Atomic uint64_t *book_fine_of(const struct book_at *at)
{
    return at->region->fine + (at->place >> WORDS_FINE_BITS);
}

ALWAYS_INLINE _Atomic uint64_t *book_tiny_of(const struct book_at *at)
{
    return at->region->tiny + (at->place >> WORDS_TINY_BITS);
}

ALWAYS_INLINE uint64_t book_coarse_seen(const struct book_at *at)
{
    return (at->note & BOOK_NOTE_COARSE) != 0 ? word_load(book_coarse_of(at)) : 0;
}

ALWAYS_INLINE uint64_t book_middle_seen(const struct book_at *at)
{
    return (at->note & BOOK_NOTE_MIDDLE) != 0 ? word_load(book_middle_of(at)) : 0;
}

ALWAYS_INLINE uint64_t book_fine_seen(const struct book_at *at)
{
    return (at->note & BOOK_NOTE_FINE) != 0 ? word_load(book_fine_of(at)) : 0;
}

// Do word_is_at for an address that is a multiple of 8.
ALWAYS_INLINE bool book_is_at(uint64_t seen, uint64_t address, uint32_t grain_bits)
{
    const uint64_t mask = ((uint64_t)1 << grain_bits) - 8;
    return LIKELY(word_row(seen) != 0) && LIKELY(((seen << 3 ^ address) & mask) == 0);
}

// Whether no block with a word starts at the address. false also if it has no region, or a table is
// gone: then it may have an entry.
ALWAYS_INLINE bool book_try_is_unrecorded(_Atomic(struct words_region *) *directory,
                                          uint64_t address)
{
    struct book_at at;
    if (!book_try_find(directory, address, &at)) {
        return false;
    }
    if (LIKELY(at.note == 0)) {
        return true;
    }
    const uint64_t fine = book_fine_seen(&at);
    return LIKELY((at.note & BOOK_NOTE_GONE) == 0) &&
           LIKELY(!book_is_at(fine, address, WORDS_FINE_BITS)) && fine != WORD_MARKER &&
           LIKELY(!book_is_at(book_middle_seen(&at), address, WORDS_MIDDLE_BITS)) &&
           LIKELY(!book_is_at(book_coarse_seen(&at), address, WORDS_COARSE_BITS));
}

// Whether the place of a new block is empty in the table `own`, and no other word starts at its
// address.
ALWAYS_INLINE bool
book_is_free(const struct book_at *at, uint64_t address, const _Atomic uint64_t *word, uint32_t own)
{
    if (LIKELY(at->note == own)) {
        return LIKELY(word_load(word) == 0);
    }
    const struct book_at others = {
        .region = at->region, .place = at->place, .note = at->note & ~own};
    const uint64_t fine = book_fine_seen(&others);
    return LIKELY((at->note & own) != 0) && LIKELY(word_load(word) == 0) &&
           LIKELY(!book_is_at(book_coarse_seen(&others), address, WORDS_COARSE_BITS)) &&
           LIKELY(!book_is_at(book_middle_seen(&others), address, WORDS_MIDDLE_BITS)) &&
           LIKELY(!book_is_at(fine, address, WORDS_FINE_BITS)) && LIKELY(fine != WORD_MARKER);
}

// Find a free place for the word of a block below 256 bytes whose grain of 32 has the marker. NULL:
// it has none (yet), or a stale word has to be removed before. A marker stays, and says that tiny
// words are there: they are given back only where no block has needed them (region_cut.h).
ALWAYS_INLINE _Atomic uint64_t *book_try_tiny_place(const struct book_at *at, uint64_t address)
{
    if ((at->note & BOOK_NOTE_FINE) == 0 || word_load(book_fine_of(at)) != WORD_MARKER ||
        UNLIKELY(word_load(book_tiny_of(at)) != 0)) {
        return NULL;
    }
    return LIKELY(!book_is_at(book_coarse_seen(at), address, WORDS_COARSE_BITS)) &&
                   LIKELY(!book_is_at(book_middle_seen(at), address, WORDS_MIDDLE_BITS))
               ? book_tiny_of(at)
               : NULL;
}

// Whether the thread's part of the sum may grow, and shrink, by so much without being added.
ALWAYS_INLINE bool book_may_raise(const struct lane_producer *p, uint64_t size_bytes)
{
    const struct sum_part *part = &p->lane->sum_part;
    return LIKELY(part->unsent_bytes + (int64_t)size_bytes <= (int64_t)part->batch_bytes);
}

// If so, a peak that the free ends is noted.
ALWAYS_INLINE bool book_may_lower(const struct lane_producer *p, uint64_t size_bytes)
{
    struct sum_part *part = &p->lane->sum_part;
    return LIKELY(part->unsent_bytes - (int64_t)size_bytes + (int64_t)part->batch_bytes >= 0) &&
           (LIKELY(part->unsent_bytes <= part->room_bytes) ||
            shared_sum_try_peak(&p->session->sum, part));
}

_Static_assert(WORD_START_BITS_OF(WORDS_TINY_BITS) == WORD_START_BITS_OF(WORDS_FINE_BITS) &&
                   WORD_BIRTH_AT(WORDS_TINY_BITS) == WORD_BIRTH_AT(WORDS_FINE_BITS),
               "words of the fine and the tiny table are laid out alike");

// Find a free place for the word of a block, and what it says but for the row. NULL: a stale word
// has to be removed before, or it is the first one of its table there.
ALWAYS_INLINE _Atomic uint64_t *
book_try_place(const struct lane_producer *p, uint64_t address, uint64_t size_bytes, uint64_t *said)
{
    struct book_at at;
    _Atomic uint64_t *word;
    if (!book_try_find(p->directory, address, &at)) {
        return NULL;
    }
    if (LIKELY(size_bytes < 1u << WORDS_MIDDLE_BITS)) {
        word = book_fine_of(&at);
        *said = p->fine_birth | size_bytes << WORD_START_BITS_OF(WORDS_FINE_BITS);
        if (LIKELY(size_bytes >= atomic_load_explicit(p->tiny_below, memory_order_relaxed)) &&
            book_is_free(&at, address, word, BOOK_NOTE_FINE)) {
            *said |= address >> 3 & 3;
            return word;
        }
        return book_try_tiny_place(&at, address); // its words are laid out alike
    }
    if (size_bytes < 1u << WORDS_COARSE_BITS) {
        word = book_middle_of(&at);
        *said = p->middle_birth | size_bytes << WORD_START_BITS_OF(WORDS_MIDDLE_BITS) |
                (address >> 3 & 31);
        return book_is_free(&at, address, word, BOOK_NOTE_MIDDLE) ? word : NULL;
    }
    word = book_coarse_of(&at);
    *said = p->coarse_birth | (address >> 3 & 511);
    if (size_bytes >= BOOK_TRY_MAX || !book_is_free(&at, address, word, BOOK_NOTE_COARSE)) {
        return NULL;
    }
    word_store(at.region->large + (at.place >> WORDS_COARSE_BITS), size_bytes); // it is free, too
    return word;
}

// Count an allocated block; `slot` names its stack.
ALWAYS_INLINE bool
book_try_allocate(struct lane_producer *p, uint64_t address, uint64_t size_bytes, uint32_t slot)
{
    const uint32_t row = p->rows[slot];
    struct book_counter *counter = book_find_counter(p, row);
    uint64_t said;
    if (UNLIKELY(counter == NULL) || UNLIKELY(row == 0) || !book_may_raise(p, size_bytes)) {
        return false;
    }
    _Atomic uint64_t *word = book_try_place(p, address, size_bytes, &said);
    if (UNLIKELY(word == NULL)) {
        return false;
    }
    book_see_peak(p, counter);
    const uint32_t cell = book_size_cell(p, counter, bucket_of(size_bytes));
    if (UNLIKELY(cell >= BOOK_SIZES)) {
        return false;
    }
    word_store(word, (uint64_t)row << WORD_ROW_AT | said);
    words_fence_put();
    book_add_block(counter, cell, size_bytes);
    p->lane->sum_part.unsent_bytes += (int64_t)size_bytes;
    p->last_allocated = address;
    p->last_row = row;
    return true;
}

// The word of a block that is freed.
struct book_found {
    _Atomic uint64_t *word;
    uint64_t seen;
    uint64_t size_bytes;
    uint64_t after; // ms from recent_code to its birth; UINT64_MAX: not known
    uint32_t grain_bits;
};

// Find the word of a block in the coarse or middle table.
ALWAYS_INLINE bool
book_try_large_word(const struct book_at *at, uint64_t address, struct book_found *out)
{
    const uint64_t coarse = book_coarse_seen(at);
    if (UNLIKELY(coarse != 0) && book_is_at(coarse, address, WORDS_COARSE_BITS)) {
        *out = (struct book_found){
            .word = book_coarse_of(at),
            .seen = coarse,
            .size_bytes = word_load(at->region->large + (at->place >> WORDS_COARSE_BITS)),
            .after = UINT64_MAX,
            .grain_bits = WORDS_COARSE_BITS};
        return true;
    }
    const uint64_t middle = book_middle_seen(at);
    if (!book_is_at(middle, address, WORDS_MIDDLE_BITS)) {
        return false;
    }
    *out = (struct book_found){.word = book_middle_of(at),
                               .seen = middle,
                               .size_bytes = word_size(middle, WORDS_MIDDLE_BITS),
                               .after = UINT64_MAX,
                               .grain_bits = WORDS_MIDDLE_BITS};
    return true;
}

// Find the word of a block below a marker.
ALWAYS_INLINE bool
book_try_tiny_word(const struct lane_producer *p, const struct book_at *at, struct book_found *out)
{
    const uint64_t tiny = word_load(book_tiny_of(at));
    *out = (struct book_found){.word = book_tiny_of(at),
                               .seen = tiny,
                               .size_bytes = word_size(tiny, WORDS_TINY_BITS),
                               .after = word_birth_code(tiny, WORDS_TINY_BITS) - p->recent_code,
                               .grain_bits = WORDS_FINE_BITS}; // laid out alike
    return word_row(tiny) != 0;
}

// Find the word of a block. false: it has none, or needs another way. At most one word starts at
// the address, so the order of the looks is free. Most blocks are small; the line of the other
// tables comes meanwhile.
ALWAYS_INLINE bool
book_try_word(const struct lane_producer *p, uint64_t address, struct book_found *out)
{
    struct book_at at;
    if (!book_try_find(p->directory, address, &at)) {
        return false;
    }
    if (UNLIKELY(at.note != BOOK_NOTE_FINE)) {
        __builtin_prefetch(book_middle_of(&at), 1);
    }
    const uint64_t fine = book_fine_seen(&at);
    if (book_is_at(fine, address, WORDS_FINE_BITS)) {
        *out = (struct book_found){.word = book_fine_of(&at),
                                   .seen = fine,
                                   .size_bytes = word_size(fine, WORDS_FINE_BITS),
                                   .after = word_birth_code(fine, WORDS_FINE_BITS) - p->recent_code,
                                   .grain_bits = WORDS_FINE_BITS};
        return true;
    }
    if (fine == WORD_MARKER && book_try_tiny_word(p, &at, out)) {
        return true;
    }
    return book_try_large_word(&at, address, out) && LIKELY(out->size_bytes < BOOK_TRY_MAX);
}

// The number of bits is a constant in each.
ALWAYS_INLINE uint64_t book_birth_of(const struct book_found *block)
{
    return block->grain_bits == WORDS_FINE_BITS     ? word_birth_ms(block->seen, WORDS_FINE_BITS)
           : block->grain_bits == WORDS_MIDDLE_BITS ? word_birth_ms(block->seen, WORDS_MIDDLE_BITS)
                                                    : word_birth_ms(block->seen, WORDS_COARSE_BITS);
}

// Return the cells of a block's birth, see book_cells_of_birth. The code of the birth suffices for
// most blocks of the fine table.
ALWAYS_INLINE uint32_t book_try_cells(struct lane_producer *p,
                                      struct book_counter *counter,
                                      const struct book_found *block,
                                      uint32_t *cohort)
{
    if (LIKELY(block->after <= p->recent_ms)) {
        *cohort = BOOK_COHORTS;
        return book_life_cell(p, counter, bucket_table[p->recent_ms - block->after]);
    }
    return book_cells_of_birth(p, counter, book_birth_of(block), cohort);
}

// Count the free of a block, before the allocator is called.
ALWAYS_INLINE bool book_try_free(struct lane_producer *p, uint64_t address)
{
    struct book_found block;
    uint32_t cohort;
    if (!book_try_word(p, address, &block)) {
        return false;
    }
    const uint32_t row = word_row(block.seen);
    struct book_counter *counter = book_find_counter(p, row);
    if (UNLIKELY(counter == NULL) || !book_may_lower(p, block.size_bytes)) {
        return false;
    }
    book_see_peak(p, counter);
    const uint32_t cell = book_try_cells(p, counter, &block, &cohort);
    if (UNLIKELY(cell >= BOOK_LIVES)) {
        return false;
    }
    word_store(block.word, 0);
    book_fence();
    if (UNLIKELY(cohort < BOOK_COHORTS)) {
        counter->cohorts[cohort] = book_cell_with(counter->cohorts[cohort], block.size_bytes);
    }
    book_add_free(counter, cell, block.size_bytes,
                  p->last_allocated == address && p->last_row == row);
    p->lane->sum_part.unsent_bytes -= (int64_t)block.size_bytes;
    p->last_allocated = 0;
    return true;
}
