// SPDX-License-Identifier: MIT
#include "target/producer/words/row_numbers.h"

// Take a range of rows. Return its first number; 0: there are no more.
static uint32_t take_range(struct process_words *words, uint32_t level)
{
    // Relaxed: a number orders nothing.
    const uint32_t range =
        atomic_load_explicit(&words->range_count, memory_order_relaxed) < WORD_RANGES
            ? atomic_fetch_add_explicit(&words->range_count, 1, memory_order_relaxed)
            : WORD_RANGES;
    if (range >= WORD_RANGES) {
        return 0;
    }
    atomic_store_explicit(words->range_levels + range, (uint8_t)level, memory_order_relaxed);
    return range * WORD_RANGE_ROWS + (range == 0); // rows begin at 1
}

static uint32_t take_new(struct process_words *words, uint32_t level)
{
    _Atomic uint32_t *next = words->next_rows + level;
    uint32_t row = atomic_load_explicit(next, memory_order_relaxed);
    for (;;) {
        const bool is_in_range = row % WORD_RANGE_ROWS != 0;
        const uint32_t taken = is_in_range ? row : take_range(words, level);
        if (taken == 0 || taken >= WORD_ROW_MAX) {
            return 0; // the last one stands for blocks whose row comes later
        }
        if (atomic_compare_exchange_weak_explicit(next, &row, taken + 1, memory_order_relaxed,
                                                  memory_order_relaxed)) {
            return taken;
        }
    }
}

// Take a number that was given back. 0: there is none of that level. What the list says of ranges
// that were never taken is false.
static uint32_t
take_again(const struct process_words *words, struct free_rows *rows, uint32_t level)
{
    for (uint32_t i = 0; i < FREE_RANGES_WORDS; i++) {
        for (uint64_t left = free_rows_ranges(rows, i); left != 0; left &= left - 1) {
            const uint32_t range = i * 64 + (uint32_t)__builtin_ctzll(left);
            // Relaxed: after the acquire in free_rows_ranges.
            const bool is_taken =
                range < atomic_load_explicit(&words->range_count, memory_order_relaxed);
            const bool is_of_level =
                is_taken && process_words_row_level(words, range * WORD_RANGE_ROWS) == level;
            const uint32_t number = is_of_level ? free_rows_take(rows, range) : 0;
            if (number != 0 && number < WORD_ROW_MAX) {
                return number;
            }
        }
    }
    return 0;
}

uint32_t row_numbers_take(struct process_words *words, uint32_t level)
{
    struct free_rows *rows = process_words_free_rows(words);
    const uint32_t number = rows != NULL ? take_again(words, rows, level) : 0;
    return number != 0 ? number : take_new(words, level);
}
