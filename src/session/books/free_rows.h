// SPDX-License-Identifier: MIT
// free_rows: numbers of a process's rows that nothing uses any more, for its threads to take again.
//
//   numbers   a bit for each number: set: it is free
//   ranges    a bit for each range of numbers (block_words.h): clear: it has none
//
// Only the recorder R sets bits of numbers, and the process P clears one to take its number. So a
// number that is taken by mistake, as by a process that goes on after R took it for dead, is only
// missing in the list. A bit of a range is cleared by who found it empty. It then looks again: R
// sets a number before its range, so one of the two sees what the other has done.
//
// It is in the region of the process's entries, behind them (block_entries.h), and takes memory
// where bits were set. Trust: R reads nothing of it; what P takes, it checks (row_numbers.c).
// Context: T and H.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/page.h"
#include "session/books/block_entries.h"
#include "session/books/block_words.h"

#define FREE_RANGES_WORDS  (WORD_RANGES / 64)
#define FREE_NUMBERS_WORDS ((WORD_ROW_MAX + 1) / 64)
#define FREE_RANGE_WORDS   (WORD_RANGE_ROWS / 64) // of the numbers of a range

struct free_rows {
    _Atomic uint64_t ranges[FREE_RANGES_WORDS];
    uint64_t reserved[PAGE_LARGEST / sizeof(uint64_t) - FREE_RANGES_WORDS];
    _Atomic uint64_t numbers[FREE_NUMBERS_WORDS];
};

#define FREE_ROWS_OFFSET ENTRY_BYTES_ALL // in the region of the entries
_Static_assert(FREE_ROWS_OFFSET % PAGE_LARGEST == 0 && sizeof(struct free_rows) % PAGE_LARGEST == 0,
               "whole pages");
_Static_assert(FREE_ROWS_OFFSET + sizeof(struct free_rows) <= sizeof(struct words_region),
               "they have room");

// R: nothing uses the number any more.
static inline void free_rows_give(struct free_rows *rows, uint32_t number)
{
    const uint32_t range = number / WORD_RANGE_ROWS;
    const uint64_t bit = (uint64_t)1 << range % 64;
    // Relaxed: the bit of the range comes after it.
    atomic_fetch_or_explicit(rows->numbers + number / 64, (uint64_t)1 << number % 64,
                             memory_order_relaxed);
    // Release: pairs with the acquires in free_rows_ranges and free_rows_take.
    atomic_fetch_or_explicit(rows->ranges + range / 64, bit, memory_order_release);
}

// P: return the ranges 64 * i and following that may have free numbers, a bit for each.
static inline uint64_t free_rows_ranges(const struct free_rows *rows, uint32_t i)
{
    // Acquire: pairs with R's release. Who took the range has stored its level before R saw a
    // number of it.
    return atomic_load_explicit(rows->ranges + i, memory_order_acquire);
}

// Take a number of the range, and return it; 0: it has none.
static inline uint32_t free_rows_search(struct free_rows *rows, uint32_t range)
{
    for (uint32_t i = range * FREE_RANGE_WORDS; i < (range + 1) * FREE_RANGE_WORDS; i++) {
        // Relaxed: a number orders nothing.
        uint64_t seen = atomic_load_explicit(rows->numbers + i, memory_order_relaxed);
        while (seen != 0) {
            if (atomic_compare_exchange_weak_explicit(rows->numbers + i, &seen, seen & (seen - 1),
                                                      memory_order_relaxed, memory_order_relaxed)) {
                return i * 64 + (uint32_t)__builtin_ctzll(seen);
            }
        }
    }
    return 0;
}

// P: take a number of the range, and return it; 0: it has none.
static inline uint32_t free_rows_take(struct free_rows *rows, uint32_t range)
{
    const uint64_t bit = (uint64_t)1 << range % 64;
    uint32_t number = free_rows_search(rows, range);
    if (number != 0) {
        return number;
    }
    // Acquire: pairs with R's release, if R was first: then the number is seen.
    atomic_fetch_and_explicit(rows->ranges + range / 64, ~bit, memory_order_acquire);
    number = free_rows_search(rows, range);
    if (number != 0) {
        // There may be more. Relaxed: R's release of them stays the head of what is read there.
        atomic_fetch_or_explicit(rows->ranges + range / 64, bit, memory_order_relaxed);
    }
    return number;
}
