// SPDX-License-Identifier: MIT
#include "target/producer/sampled_blocks.h"

#define COUNTERS_PER_BLOCK 16u

static _Atomic uint8_t *counter_of(struct sampled_blocks *blocks, uint64_t hash, uint32_t level)
{
    const uint64_t mask = blocks->levels[level].mask;
    return blocks->filter + (hash & mask) + mask + 1;
}

// Add `change` to a counter.
static void change_counter(_Atomic uint8_t *counter, int change)
{
    uint8_t before = atomic_load_explicit(counter, memory_order_relaxed);
    while (before != SAMPLED_FILTER_FOREVER &&
           !atomic_compare_exchange_weak_explicit(counter, &before, (uint8_t)(before + change),
                                                  memory_order_relaxed, memory_order_relaxed)) {
    }
}

static _Atomic uint64_t *line_of(struct sampled_blocks *blocks, uint64_t hash, uint32_t level)
{
    const uint64_t size = SAMPLED_LEVEL_SIZE(SAMPLED_LINES_BITS, level);
    return blocks->table[size + hash % size].addresses;
}

// Count the blocks of a level of the table in the levels `from` to `to` of the filter.
static void
count_level(struct sampled_blocks *blocks, uint32_t table_level, uint32_t from, uint32_t to)
{
    const uint64_t size = SAMPLED_LEVEL_SIZE(SAMPLED_LINES_BITS, table_level);
    for (uint64_t i = 0; i < size * SAMPLED_BLOCKS_WAYS; i++) {
        const struct sampled_line *line = blocks->table + size + i / SAMPLED_BLOCKS_WAYS;
        const uint64_t address =
            atomic_load_explicit(line->addresses + i % SAMPLED_BLOCKS_WAYS, memory_order_seq_cst);
        for (uint32_t level = from; address != 0 && level <= to; level++) {
            change_counter(counter_of(blocks, sampled_blocks_hash(address), level), 1);
        }
    }
}

// Make the levels up to `wanted` ready. One thread does that; the others go on without them.
//
// Sequentially consistent: a thread that adds a block sees `counted`, or we see its block, or both.
static void grow(struct sampled_blocks *blocks, uint32_t wanted)
{
    uint32_t had = atomic_load_explicit(&blocks->ready, memory_order_relaxed);
    if (wanted <= had ||
        !atomic_compare_exchange_strong_explicit(&blocks->counted, &had, wanted,
                                                 memory_order_seq_cst, memory_order_relaxed)) {
        return;
    }
    const uint32_t deepest = atomic_load_explicit(&blocks->deepest, memory_order_seq_cst);
    for (uint32_t level = 0; level <= deepest; level++) {
        count_level(blocks, level, had + 1, wanted);
    }
    atomic_store_explicit(&blocks->ready, wanted, memory_order_release);
}

// Choose the level for this number of blocks.
static void fit_level(struct sampled_blocks *blocks, uint64_t count)
{
    uint32_t level = 0;
    while (level < SAMPLED_LEVELS - 1 && count * COUNTERS_PER_BLOCK > blocks->levels[level].mask) {
        level++;
    }
    grow(blocks, level);
    const uint32_t ready = atomic_load_explicit(&blocks->ready, memory_order_acquire);
    atomic_store_explicit(&blocks->level, blocks->levels + (level < ready ? level : ready),
                          memory_order_release);
}

void sampled_blocks_init(struct sampled_blocks *blocks)
{
    for (uint32_t level = 0; level < SAMPLED_LEVELS; level++) {
        const uint64_t size = SAMPLED_LEVEL_SIZE(SAMPLED_FILTER_BITS, level);
        blocks->levels[level] =
            (struct block_filter){.counters = blocks->filter + size, .mask = size - 1};
    }
    fit_level(blocks, 0);
}

// Exchange one entry of a line. False: no entry is `old`.
static bool replace(_Atomic uint64_t *line, uint64_t old, uint64_t new)
{
    for (uint32_t i = 0; i < SAMPLED_BLOCKS_WAYS; i++) {
        uint64_t expected = old;
        if (atomic_load_explicit(line + i, memory_order_relaxed) == old &&
            atomic_compare_exchange_strong_explicit(line + i, &expected, new, memory_order_seq_cst,
                                                    memory_order_relaxed)) {
            return true;
        }
    }
    return false;
}

// Note that a level of the table is used.
static void deepen(struct sampled_blocks *blocks, uint32_t level)
{
    uint32_t deepest = atomic_load_explicit(&blocks->deepest, memory_order_relaxed);
    while (level > deepest &&
           !atomic_compare_exchange_weak_explicit(&blocks->deepest, &deepest, level,
                                                  memory_order_seq_cst, memory_order_relaxed)) {
    }
}

// Enter a block into the smallest level of the table that has room for it.
static bool enter(struct sampled_blocks *blocks, uint64_t hash, uint64_t address)
{
    for (uint32_t level = 0; level < SAMPLED_LEVELS; level++) {
        deepen(blocks, level);
        if (replace(line_of(blocks, hash, level), 0, address)) {
            return true;
        }
    }
    return false;
}

void sampled_blocks_add(struct sampled_blocks *blocks, uint64_t address)
{
    const uint64_t hash = sampled_blocks_hash(address);
    if (!enter(blocks, hash, address)) {
        for (uint32_t level = 0; level < SAMPLED_LEVELS; level++) {
            atomic_store_explicit(counter_of(blocks, hash, level), SAMPLED_FILTER_FOREVER,
                                  memory_order_relaxed);
        }
        return;
    }
    const uint32_t counted = atomic_load_explicit(&blocks->counted, memory_order_seq_cst);
    for (uint32_t level = 0; level <= counted; level++) {
        change_counter(counter_of(blocks, hash, level), 1);
    }
    fit_level(blocks, atomic_fetch_add_explicit(&blocks->count, 1, memory_order_relaxed) + 1);
}

bool sampled_blocks_take(struct sampled_blocks *blocks, uint64_t address)
{
    const uint64_t hash = sampled_blocks_hash(address);
    const uint32_t deepest = atomic_load_explicit(&blocks->deepest, memory_order_relaxed);
    // Acquire: the levels up to this one have counted the block.
    const uint32_t ready = atomic_load_explicit(&blocks->ready, memory_order_acquire);
    uint32_t at = 0;
    while (at <= deepest && !replace(line_of(blocks, hash, at), address, 0)) {
        at++;
    }
    if (at > deepest) {
        // In the largest level, which is the most precise.
        return atomic_load_explicit(counter_of(blocks, hash, ready), memory_order_relaxed) ==
               SAMPLED_FILTER_FOREVER;
    }
    for (uint32_t level = 0; level <= ready; level++) {
        change_counter(counter_of(blocks, hash, level), -1);
    }
    fit_level(blocks, atomic_fetch_sub_explicit(&blocks->count, 1, memory_order_relaxed) - 1);
    return true;
}
