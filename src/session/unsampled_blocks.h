// SPDX-License-Identifier: MIT
// unsampled_blocks: a bounded table of one process's live blocks that were not recorded.
//
//   unsampled_blocks_add()     add an unrecorded block; false: this or another block was forgotten
//   unsampled_blocks_take()    remove a block that is freed: return its entry, 0 if there was none
//
// The table makes it unnecessary to send the frees of most such blocks, and it shows how much
// memory they take (sampler.h). The free of a forgotten block is sent, and the recorder finds no
// block for it: the table saves work, but need not be complete. It must never hold a recorded
// block. An address enters after its block was allocated and leaves before it is freed, and a
// thread that records a block takes its address out first. So threads that hand a block to each
// other see each other's changes, and the order of memory is relaxed. Entries enter and leave by
// one exchange, so none is lost or counted twice where two threads meet in one line.
//
//   address -> line (64 bytes) of UNSAMPLED_WAYS entries, in no order; a full line forgets one
//   entry:  size (16 bits, a float of 11 bits) | custom block (1) | address (47)
//
// Memory: at most UNSAMPLED_BYTES, only touched pages. Context: T, any thread; async-signal-safe.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/hash.h"
#include "session/wire.h"

#define UNSAMPLED_WAYS  8u
#define UNSAMPLED_LINES (1u << 16)

#define UNSAMPLED_ADDRESS_BITS   47
#define UNSAMPLED_CUSTOM         ((uint64_t)1 << UNSAMPLED_ADDRESS_BITS)
#define UNSAMPLED_SIZE_SHIFT     (UNSAMPLED_ADDRESS_BITS + 1)
#define UNSAMPLED_BLOCK_MASK     (((uint64_t)1 << UNSAMPLED_SIZE_SHIFT) - 1)
#define UNSAMPLED_MANTISSA_BITS  11
#define UNSAMPLED_PRECISION_BITS (UNSAMPLED_MANTISSA_BITS - 1)
#define UNSAMPLED_MANTISSA_MASK  ((1u << UNSAMPLED_MANTISSA_BITS) - 1)

struct unsampled_blocks_line {
    _Alignas(64) _Atomic uint64_t entries[UNSAMPLED_WAYS]; // 0: none
};

struct unsampled_blocks {
    struct unsampled_blocks_line lines[UNSAMPLED_LINES];
    _Alignas(64) uint64_t owner; // names the process; a forked child begins another table
};
#define UNSAMPLED_BYTES sizeof(struct unsampled_blocks)

// Return an entry for a block. If its address does not fit, the entry has no block and cannot be
// added.
static inline uint64_t unsampled_blocks_entry(uint64_t address, uint64_t size_bytes)
{
    const uint32_t bits = 64 - (uint32_t)__builtin_clzll(size_bytes | 1);
    const uint32_t shift = bits > UNSAMPLED_MANTISSA_BITS ? bits - UNSAMPLED_MANTISSA_BITS : 0;
    const uint64_t half = ((uint64_t)1 << shift) >> 1; // rounds to the nearest possible size
    const uint64_t kept = (size_bytes + half) >> shift;
    const uint64_t mantissa = kept < UNSAMPLED_MANTISSA_MASK ? kept : UNSAMPLED_MANTISSA_MASK;
    const uint64_t size =
        shift < 32 ? mantissa | (uint64_t)shift << UNSAMPLED_MANTISSA_BITS : UINT16_MAX;
    const uint64_t plain = address & ~WIRE_CUSTOM_BLOCK;
    const uint64_t custom = plain != address ? UNSAMPLED_CUSTOM : 0;
    return size << UNSAMPLED_SIZE_SHIFT |
           (plain >> UNSAMPLED_ADDRESS_BITS == 0 ? plain | custom : 0);
}

// Return the size of the entry's block, with a precision of one in 1 << UNSAMPLED_PRECISION_BITS.
// The result never changes.
static inline uint64_t unsampled_blocks_size(uint64_t entry)
{
    const uint32_t size = (uint32_t)(entry >> UNSAMPLED_SIZE_SHIFT);
    return (uint64_t)(size & UNSAMPLED_MANTISSA_MASK) << (size >> UNSAMPLED_MANTISSA_BITS);
}

ALWAYS_INLINE struct unsampled_blocks_line *unsampled_blocks_line_of(struct unsampled_blocks *set,
                                                                     uint64_t entry)
{
    return set->lines + hash_mix(entry & UNSAMPLED_BLOCK_MASK) % UNSAMPLED_LINES;
}

// Add an entry. `random` chooses which entry a full line forgets: *forgotten.
static inline bool unsampled_blocks_add(struct unsampled_blocks *set,
                                        uint64_t entry,
                                        uint64_t random,
                                        uint64_t *forgotten)
{
    struct unsampled_blocks_line *line = unsampled_blocks_line_of(set, entry);
    if ((entry & UNSAMPLED_BLOCK_MASK) == 0) {
        *forgotten = entry;
        return false;
    }
    for (uint32_t i = 0; i < UNSAMPLED_WAYS; i++) {
        uint64_t none = 0;
        if (atomic_load_explicit(line->entries + i, memory_order_relaxed) == 0 &&
            atomic_compare_exchange_strong_explicit(line->entries + i, &none, entry,
                                                    memory_order_relaxed, memory_order_relaxed)) {
            return true;
        }
    }
    *forgotten = atomic_exchange_explicit(line->entries + random % UNSAMPLED_WAYS, entry,
                                          memory_order_relaxed);
    return *forgotten == 0;
}

// Take out the entry of the block at `address` and return it; 0: there was none.
static inline uint64_t unsampled_blocks_take(struct unsampled_blocks *set, uint64_t address)
{
    const uint64_t wanted = unsampled_blocks_entry(address, 0);
    struct unsampled_blocks_line *line = unsampled_blocks_line_of(set, wanted);
    for (uint32_t i = 0; i < UNSAMPLED_WAYS && wanted != 0; i++) {
        uint64_t entry = atomic_load_explicit(line->entries + i, memory_order_relaxed);
        if ((entry & UNSAMPLED_BLOCK_MASK) == wanted &&
            atomic_compare_exchange_strong_explicit(line->entries + i, &entry, 0,
                                                    memory_order_relaxed, memory_order_relaxed)) {
            return entry;
        }
    }
    return 0;
}
