// SPDX-License-Identifier: MIT
// freed_table: when a process freed something last, by a hash of its address.
//
// A thread may hold a block back and count it as a pair when it frees it itself (nursery.h), unless
// another thread freed the block meanwhile: then what the first one frees is another block at the
// same address. So whoever frees a block that it does not hold notes the stamp of that here, before
// the allocator is called; and who holds a block remembers what was noted for its address when it
// was allocated. If that has changed, somebody may have freed it. (Often it was another address.)
//
//   free of a block that is not held    freed_table_note()     the latest stamp stays
//   allocation that is held             freed_table_latest()   -> walk_cache
//   free of a block that is held        freed_table_latest()   the same as walk_cache: it is ours
//
// A block that is held was allocated after the walk_cache stamp, and before any later one of its
// address; so that stamp also says which of the frees of its address is its own, if another thread
// did it. Who gets an address has seen all that was noted before it was freed: threads that hand a
// block to each other synchronize by doing so, and so do allocators.
//
// One for each process, zeroed, of static storage. Context: T, any thread; async-signal-safe.
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "base/compiler.h"

#define FREED_TABLE_BITS 10u

struct freed_table {
    _Alignas(64) _Atomic uint64_t stamps[1u << FREED_TABLE_BITS];
};

// A moment before a block was freed, and what was noted before that. Zero: no stamp was taken.
struct freed_note {
    uint64_t stamp;
    uint64_t latest;
};

ALWAYS_INLINE _Atomic uint64_t *freed_table_cell(struct freed_table *table, uint64_t address)
{
    return table->stamps + ((address >> 4) * 0x9e3779b97f4a7c15u >> (64 - FREED_TABLE_BITS));
}

ALWAYS_INLINE uint64_t freed_table_latest(struct freed_table *table, uint64_t address)
{
    return atomic_load_explicit(freed_table_cell(table, address), memory_order_relaxed);
}

// Returns what was noted before.
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
