// SPDX-License-Identifier: MIT
// sampled_blocks: see the header.
#include "target/producer/sampled_blocks.h"

#define COUNTERS_PER_BLOCK 16u

// Choose the level for this number of blocks.
static void fit_level(struct sampled_blocks *blocks, uint64_t count)
{
    uint32_t level = 0;
    while (level < SAMPLED_FILTER_LEVELS - 1 &&
           count * COUNTERS_PER_BLOCK > blocks->levels[level].mask) {
        level++;
    }
    atomic_store_explicit(&blocks->level, blocks->levels + level, memory_order_relaxed);
}

void sampled_blocks_init(struct sampled_blocks *blocks)
{
    for (uint32_t level = 0; level < SAMPLED_FILTER_LEVELS; level++) {
        const uint64_t size = (uint64_t)1 << (SAMPLED_FILTER_BITS + 3 * level);
        blocks->levels[level] =
            (struct block_filter){.counters = blocks->filter + size, .mask = size - 1};
    }
    fit_level(blocks, 0);
}

static _Atomic uint8_t *counter_of(struct sampled_blocks *blocks, uint64_t hash, uint32_t level)
{
    const uint64_t mask = blocks->levels[level].mask;
    return blocks->filter + (hash & mask) + mask + 1;
}

// Add one to each level's counter, or subtract one, or, with SAMPLED_FILTER_FOREVER, set it to
// that.
static void change_filter(struct sampled_blocks *blocks, uint64_t hash, int change)
{
    for (uint32_t level = 0; level < SAMPLED_FILTER_LEVELS; level++) {
        _Atomic uint8_t *counter = counter_of(blocks, hash, level);
        uint8_t before = atomic_load_explicit(counter, memory_order_relaxed);
        uint8_t after;
        do {
            if (before == SAMPLED_FILTER_FOREVER) {
                break;
            }
            after = change == (int)SAMPLED_FILTER_FOREVER ? SAMPLED_FILTER_FOREVER
                                                          : (uint8_t)(before + change);
        } while (!atomic_compare_exchange_weak_explicit(
            counter, &before, after, memory_order_relaxed, memory_order_relaxed));
    }
}

// Exchange one entry of a line. False: no entry is `old`.
static bool replace(struct sampled_blocks *blocks, uint64_t hash, uint64_t old, uint64_t new)
{
    _Atomic uint64_t *line = blocks->table[hash % SAMPLED_BLOCKS_LINES];
    for (uint32_t i = 0; i < SAMPLED_BLOCKS_WAYS; i++) {
        uint64_t expected = old;
        if (atomic_load_explicit(line + i, memory_order_relaxed) == old &&
            atomic_compare_exchange_strong_explicit(line + i, &expected, new, memory_order_relaxed,
                                                    memory_order_relaxed)) {
            return true;
        }
    }
    return false;
}

void sampled_blocks_add(struct sampled_blocks *blocks, uint64_t address)
{
    const uint64_t hash = sampled_blocks_hash(address);
    if (!replace(blocks, hash, 0, address)) {
        change_filter(blocks, hash, SAMPLED_FILTER_FOREVER);
        return;
    }
    change_filter(blocks, hash, 1);
    fit_level(blocks, atomic_fetch_add_explicit(&blocks->count, 1, memory_order_relaxed) + 1);
}

bool sampled_blocks_take(struct sampled_blocks *blocks, uint64_t address)
{
    const uint64_t hash = sampled_blocks_hash(address);
    if (!replace(blocks, hash, address, 0)) {
        // In the largest level, which is the most precise.
        return atomic_load_explicit(counter_of(blocks, hash, SAMPLED_FILTER_LEVELS - 1),
                                    memory_order_relaxed) == SAMPLED_FILTER_FOREVER;
    }
    change_filter(blocks, hash, -1);
    fit_level(blocks, atomic_fetch_sub_explicit(&blocks->count, 1, memory_order_relaxed) - 1);
    return true;
}
