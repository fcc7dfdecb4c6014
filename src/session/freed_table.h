// SPDX-License-Identifier: MIT
// freed_table: the latest free in a process, by a hash of the freed address.
//
// A thread may hold a block back and count it as a pair when it frees it itself (nursery.h), unless
// another thread freed the block meanwhile: then the first thread frees another block at the same
// address. So a thread that frees a block that it does not hold notes the stamp of the free here,
// before it calls the allocator. A thread that holds a block remembers the stamp that was noted for
// its address when it was allocated. If the stamp has changed, another thread may have freed the
// block. (Often it freed another address.)
//
//   free of a block that is not held    freed_table_note()     the latest stamp stays
//   allocation that is held             freed_table_latest()   -> remembered stamp
//   free of a block that is held        freed_table_latest()   equals the remembered one: a pair
//
// A held block was allocated after the remembered stamp, and before any later stamp of its address.
// So the stamp also determines which free of the address ends the block, if another thread freed
// it. A thread that gets an address has seen all stamps that were noted before the address was
// freed: threads that hand a block to each other synchronize by doing so, and so do allocators.
//
// Neighbouring addresses have neighbouring stamps, and there are many more cache lines than blocks
// that a thread frees again and again: so threads with arenas of their own seldom write to the same
// line, which would cost each free 35 ns.
//
// One table for each process, zeroed, in static storage. Context: T, any thread; async-signal-safe.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "session/books/block_words.h"

#define FREED_TABLE_LINE_BITS 12u
#define FREED_TABLE_LINE      8u // stamps of a cache line, each for addresses 16 bytes apart

struct freed_table {
    _Alignas(64) _Atomic uint64_t stamps[1u << FREED_TABLE_LINE_BITS][FREED_TABLE_LINE];
};

// A stamp before a block was freed, and the stamp noted before that. Zero: no stamp was taken.
struct freed_note {
    uint64_t stamp;
    uint64_t latest;
    struct word_block taken; // if the thread keeps a book; of row 0: the block had no word
    bool is_announced;       // by this one; else an outer realloc has an earlier stamp announced
};

ALWAYS_INLINE _Atomic uint64_t *freed_table_cell(struct freed_table *table, uint64_t address)
{
    const uint64_t grain = address >> 4;
    const uint64_t hash = grain / FREED_TABLE_LINE * 0x9e3779b97f4a7c15u;
    return table->stamps[hash >> (64 - FREED_TABLE_LINE_BITS)] + grain % FREED_TABLE_LINE;
}

ALWAYS_INLINE uint64_t freed_table_latest(struct freed_table *table, uint64_t address)
{
    return atomic_load_explicit(freed_table_cell(table, address), memory_order_relaxed);
}

// Note `stamp` for `address`, and return the stamp noted before.
ALWAYS_INLINE uint64_t freed_table_note(struct freed_table *table, uint64_t address, uint64_t stamp)
{
    _Atomic uint64_t *cell = freed_table_cell(table, address);
    uint64_t before = atomic_load_explicit(cell, memory_order_relaxed);
    while (before < stamp &&
           !atomic_compare_exchange_weak_explicit(cell, &before, stamp, memory_order_relaxed,
                                                  memory_order_relaxed)) {
    }
    return before;
}
