// SPDX-License-Identifier: MIT
// memory_budget: see the header.
#include "aggregate/memory_budget.h"

#include "base/hash.h"
#include "base/minmax.h"
#include "session/sampling_level.h"
#include "session/wire.h"

enum {
    PARTS = 32,
    SAMPLE_FROM = 7,
    SAMPLE_MOST = 9,
    LATE_ENTRIES_MAX = 16384,
};

static enum memory_merging merging_of(uint64_t max_bytes, uint64_t bytes)
{
    const uint64_t part = max_bytes / PARTS;
    if (bytes < 14 * part) {
        return MEMORY_MERGES_NOTHING;
    }
    return bytes < 16 * part   ? MEMORY_MERGES_DEEP
           : bytes < 17 * part ? MEMORY_MERGES_MOST
                               : MEMORY_MERGES_ALL;
}

static uint32_t level_of(uint64_t max_bytes, uint64_t bytes)
{
    const uint64_t from = SAMPLE_FROM * (max_bytes / PARTS);
    const uint64_t step = (SAMPLE_MOST - SAMPLE_FROM) * (max_bytes / PARTS) / LANE_LEVEL_MAX;
    if (bytes < from) {
        return 0;
    }
    const uint64_t level = 1 + (bytes - from) / step;
    return level < LANE_LEVEL_MAX ? (uint32_t)level : LANE_LEVEL_MAX;
}

void memory_budget_update(struct memory_budget *budget, uint64_t own_bytes, uint64_t block_count)
{
    if (budget->max_bytes == 0) {
        return;
    }
    const uint64_t block_bytes = block_count * MEMORY_BUDGET_BLOCK_BYTES;
    const uint64_t other_bytes = own_bytes > block_bytes ? own_bytes - block_bytes : 0;
    const enum memory_merging merging = merging_of(budget->max_bytes, other_bytes);
    budget->merging = max_u64(budget->merging, merging);
    budget->level = level_of(budget->max_bytes, block_bytes);
}

bool memory_budget_adds(struct memory_budget *budget)
{
    if (budget->merging == MEMORY_MERGES_ALL) {
        if (budget->late_entries == LATE_ENTRIES_MAX) {
            return false;
        }
        budget->late_entries++;
    }
    return true;
}

uint32_t memory_budget_depth(const struct memory_budget *budget)
{
    static const uint32_t depths[] = {[MEMORY_MERGES_NOTHING] = UINT32_MAX,
                                      [MEMORY_MERGES_DEEP] = 16,
                                      [MEMORY_MERGES_MOST] = 4,
                                      [MEMORY_MERGES_ALL] = 0};
    return depths[budget->merging];
}

bool memory_budget_takes(struct memory_budget *budget, uint64_t size_bytes, uint32_t *shift)
{
    const uint32_t wanted = sampler_shift(budget->level, size_bytes);
    const uint32_t room = WIRE_SHIFT_MAX - *shift;
    const uint32_t more = wanted < room ? wanted : room;
    budget->random += 0x9e3779b97f4a7c15ULL; // SplitMix64, as in the sampler
    if ((hash_mix(budget->random) & (((uint64_t)1 << more) - 1)) == 0) {
        *shift += more;
        return true;
    }
    budget->unkept_blocks++;
    return false;
}
