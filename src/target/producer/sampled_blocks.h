// SPDX-License-Identifier: MIT
// sampled_blocks: the live blocks of one process that were chosen to be recorded (byte_sampler.h).
//
//   block_filter_may_have()     one byte says that a block was not chosen: nearly every free ends
//   sampled_blocks_add()        a chosen block
//   sampled_blocks_take()       true: the free of this block has to be sent
//
//   filter   4 KiB | 32 KiB | 256 KiB | 2 MiB: counters of a byte, by the hash of the address
//   table    lines of 64 bytes with 8 addresses, by the same hash
//
// Each level of the filter counts all blocks of the table, so a level may replace another at any
// moment, and a thread may keep one for as long as it likes. Frees ask the smallest level that has
// 16 counters for each block: at most one free in 16 is looked up in vain (then its thread takes
// the level that fits), and few cache lines are read. A counter that reaches 255 stays there. If a
// line of the table is full, the counters of the new block are set to 255: from then on all frees
// of such addresses are sent, and the recorder finds no block for most of them. So no free of a
// chosen block is ever missed.
//
// A block enters after it was allocated and leaves before it is freed, each by its own atomic
// operation. Threads that hand a block to each other synchronize by doing so, therefore the order
// of memory is relaxed. A forked child continues with its copy.
// Memory: SAMPLED_BLOCKS_BYTES of address space, only touched pages. Context: T, any thread and its
// signal handlers; no lock.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "session/thread_pass.h"

#define SAMPLED_BLOCKS_WAYS    8u
#define SAMPLED_BLOCKS_LINES   (1u << 15)
#define SAMPLED_FILTER_LEVELS  4u
#define SAMPLED_FILTER_BITS    12u // of the smallest level; each further level has three more
#define SAMPLED_FILTER_FOREVER 255u

struct sampled_blocks {
    // A level is [size, 2 * size): mask + 1 is both its size and its place.
    _Atomic uint8_t filter[1u << (SAMPLED_FILTER_BITS + 3 * (SAMPLED_FILTER_LEVELS - 1) + 1)];
    _Alignas(64) _Atomic uint64_t table[SAMPLED_BLOCKS_LINES][SAMPLED_BLOCKS_WAYS]; // 0: none
    _Alignas(64) struct block_filter levels[SAMPLED_FILTER_LEVELS];
    _Alignas(64) _Atomic(const struct block_filter *) level; // that frees ask
    _Atomic uint64_t count;                                  // blocks in the table
};
#define SAMPLED_BLOCKS_BYTES sizeof(struct sampled_blocks)

// Initialize zeroed memory.
void sampled_blocks_init(struct sampled_blocks *blocks);

// Add a block. `address` is not 0.
void sampled_blocks_add(struct sampled_blocks *blocks, uint64_t address);

// Remove the block at `address`, which is about to be freed. False: it was not chosen.
bool sampled_blocks_take(struct sampled_blocks *blocks, uint64_t address);

ALWAYS_INLINE uint64_t sampled_blocks_hash(uint64_t address)
{
    return address * 0x9e3779b97f4a7c15u >> 32; // Fibonacci hashing
}

// Return the level of the filter that fits now.
ALWAYS_INLINE const struct block_filter *sampled_blocks_filter(const struct sampled_blocks *blocks)
{
    return atomic_load_explicit(&blocks->level, memory_order_relaxed);
}

ALWAYS_INLINE bool block_filter_may_have(const struct block_filter *filter, uint64_t address)
{
    const uint64_t place = sampled_blocks_hash(address) & filter->mask;
    return atomic_load_explicit(filter->counters + place, memory_order_relaxed) != 0;
}

ALWAYS_INLINE bool sampled_blocks_may_have(const struct sampled_blocks *blocks, uint64_t address)
{
    return block_filter_may_have(sampled_blocks_filter(blocks), address);
}
