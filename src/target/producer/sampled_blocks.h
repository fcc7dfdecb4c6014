// SPDX-License-Identifier: MIT
// sampled_blocks: the live blocks of one process that were chosen to be recorded (byte_sampler.h).
//
//   block_filter_may_have()     one byte says that a block was not chosen: nearly every free ends
//   sampled_blocks_add()        a chosen block
//   sampled_blocks_take()       true: the free of this block has to be sent
//
//   filter   4 KiB | 32 KiB | 256 KiB | 2 MiB: counters of a byte, by the hash of the address
//   table    4 KiB | 32 KiB | 256 KiB | 2 MiB: lines of 64 bytes with 8 addresses, by the same hash
//
// Both begin with their smallest level: a program with few chosen blocks touches few pages.
//
// Each used level of the filter counts all blocks, so a level may replace another at any moment,
// and a thread may keep one for as long as it likes. Frees ask the smallest level that has 16
// counters for each block: at most one free in 16 is looked up in vain (then its thread takes the
// level that fits), and few cache lines are read. A counter that reaches 255 stays there.
//
// A block stays in the level of the table in which it found room. If it finds none, all its
// counters are set to 255: from then on all frees of such addresses are sent, and for most of them
// the recorder finds no block. So no free of a chosen block is ever missed.
//
// A further level of the filter is filled while blocks come and go (grow): a block that enters
// meanwhile is counted at least once, one that leaves stays counted there.
//
// A block enters after it was allocated and leaves before it is freed, each by its own atomic
// operation. Threads that hand a block to each other synchronize by doing so, therefore the order
// of memory is relaxed, but for the growth of the filter. A forked child continues with its copy.
// If its parent was just adding a level, the child stays below it, and looks up more frees in vain.
// Memory: SAMPLED_BLOCKS_BYTES of address space, only touched pages. Context: T, any thread and its
// signal handlers; no lock.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "session/thread_pass.h"

#define SAMPLED_LEVELS         4u
#define SAMPLED_LEVEL_BITS     3u  // that each further level has more
#define SAMPLED_FILTER_BITS    12u // of the smallest level
#define SAMPLED_FILTER_FOREVER 255u
#define SAMPLED_BLOCKS_WAYS    8u
#define SAMPLED_LINES_BITS     6u // of the smallest level
// A level is [size, 2 * size): mask + 1 is both its size and its place.
#define SAMPLED_LEVEL_SIZE(bits, level) ((uint64_t)1 << ((bits) + SAMPLED_LEVEL_BITS * (level)))
#define SAMPLED_LEVELS_SIZE(bits)       (2 * SAMPLED_LEVEL_SIZE(bits, SAMPLED_LEVELS - 1))

struct sampled_line {
    _Atomic uint64_t addresses[SAMPLED_BLOCKS_WAYS]; // 0: none
};

struct sampled_blocks {
    _Atomic uint8_t filter[SAMPLED_LEVELS_SIZE(SAMPLED_FILTER_BITS)];
    _Alignas(64) struct sampled_line table[SAMPLED_LEVELS_SIZE(SAMPLED_LINES_BITS)];
    _Alignas(64) struct block_filter levels[SAMPLED_LEVELS];
    _Alignas(64) _Atomic(const struct block_filter *) level; // that frees ask
    _Atomic uint64_t count;                                  // blocks in the table
    _Atomic uint32_t deepest; // level of the table that has been used
    _Atomic uint32_t counted; // highest level of the filter that counts new blocks
    _Atomic uint32_t ready;   // highest level that counts all blocks
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
    // Fibonacci hashing. A factor of 32 bits with a sign is part of the instruction.
    return address * (uint64_t)INT32_C(-0x61c88647) >> 32;
}

// Return the level of the filter that fits now.
ALWAYS_INLINE const struct block_filter *sampled_blocks_filter(const struct sampled_blocks *blocks)
{
    // Acquire: pairs with the release after the level was filled.
    return atomic_load_explicit(&blocks->level, memory_order_acquire);
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
