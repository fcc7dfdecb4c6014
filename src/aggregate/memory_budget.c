// SPDX-License-Identifier: MIT
#include "aggregate/memory_budget.h"

#include "base/minmax.h"
#include "session/books/sampling_level.h"

enum {
    PARTS = 32,
    MERGE_FROM = 14,
    MORE_FROM = 16,
    FULL_FROM = 17,
    FULL_AT_ONCE = 20,
    SAMPLE_FROM = 7,
    SAMPLE_MOST = 9,
    LATE_ENTRIES_MAX = 16384,
    ENTRIES_MIN = 16384, // fewer are not what takes the memory
    ENTRY_BYTES = 96,    // of a node and a row, half
    OTHER_BYTES = 10 << 20,
    LANES_FROM = 4,
    LANES_MAPPED = 4,       // the recorder reads a lane's header, ring and book
    LANE_BYTES = 256 << 10, // of a thread with hundreds of stacks
};

// Return a 32nd of the cap of words, whose level begins at SAMPLE_FROM of them.
static uint64_t words_part(const struct memory_budget *budget)
{
    return budget->max_bytes / (budget->is_usual ? SAMPLE_MOST : PARTS);
}

uint64_t memory_budget_words_from(const struct memory_budget *budget)
{
    return budget->max_bytes != 0 ? SAMPLE_FROM * words_part(budget) : UINT64_MAX;
}

bool memory_budget_gives_lanes_back(const struct memory_budget *budget, uint32_t lanes)
{
    return budget->max_bytes != 0 &&
           (uint64_t)lanes * LANE_BYTES > LANES_FROM * (budget->max_bytes / PARTS);
}

static uint32_t level_of(const struct memory_budget *budget, uint64_t bytes)
{
    const uint64_t from = memory_budget_words_from(budget);
    const uint64_t steps = LANE_LEVEL_MAX - MEMORY_LEVEL_MIN + 1;
    const uint64_t step = max_u64((SAMPLE_MOST - SAMPLE_FROM) * words_part(budget) / steps, 1);
    if (bytes < from) {
        return 0;
    }
    const uint64_t level = MEMORY_LEVEL_MIN + (bytes - from) / step;
    return (uint32_t)min_u64(level, LANE_LEVEL_MAX);
}

// Return from how many entries on one pass treats the table as full.
static uint64_t entries_of_pass(const struct memory_budget *budget)
{
    return budget->entries_max != 0
               ? budget->entries_max + budget->entries_max / 4
               : (MERGE_FROM * (budget->max_bytes / PARTS) - OTHER_BYTES) / ENTRY_BYTES;
}

static void limit_entries(struct memory_budget *budget, uint64_t entries, uint64_t bytes)
{
    const uint64_t part = budget->max_bytes / PARTS;
    const bool is_first = budget->entries_max == 0;
    if (is_first && bytes < MERGE_FROM * part && entries < entries_of_pass(budget)) {
        return;
    }
    budget->bytes_left = budget->bytes_left != 0 ? budget->bytes_left : bytes;
    // Merging may leave memory in use, so what counts is how entries and bytes have grown since.
    const bool merges = is_first || entries > budget->entries_left + budget->entries_left / 4;
    const bool grows = bytes >= budget->bytes_left + part;
    if (is_first || (merges && grows && bytes >= MORE_FROM * part)) {
        const uint64_t most = is_first ? entries : min_u64(entries, budget->entries_max);
        budget->entries_max = max_u64(most, ENTRIES_MIN);
    }
    budget->is_full = budget->is_full || budget->keeps_rows || bytes >= FULL_AT_ONCE * part ||
                      (!merges && grows && bytes >= FULL_FROM * part);
}

static void note_lanes(struct memory_budget *budget, const struct memory_use *use)
{
    const uint64_t lanes_bytes = use->lanes_bytes / LANES_MAPPED;
    if (lanes_bytes > LANES_FROM * (budget->max_bytes / PARTS)) { // else others are to blame
        budget->over_bytes = max_u64(budget->over_bytes,
                                     excess_u64(use->own_bytes + lanes_bytes, budget->max_bytes));
    }
}

bool memory_budget_update(struct memory_budget *budget, const struct memory_use *use)
{
    if (budget->max_bytes == 0) {
        return false;
    }
    limit_entries(budget, use->entries, use->own_bytes);
    note_lanes(budget, use);
    budget->level = level_of(budget, use->words_bytes);
    return budget->entries_max != 0 && use->entries >= budget->entries_max && !budget->is_full;
}

bool memory_budget_is_full(const struct memory_budget *budget, uint64_t entries)
{
    return budget->is_full || (budget->max_bytes != 0 && entries >= entries_of_pass(budget));
}

void memory_budget_merged(struct memory_budget *budget, uint64_t entries)
{
    budget->entries_left = entries;
    budget->bytes_left = 0; // read next
    budget->late_entries = 0;
    budget->is_full = budget->is_full || entries > budget->entries_max / 4 * 3;
}

bool memory_budget_adds(struct memory_budget *budget)
{
    if (budget->late_entries == LATE_ENTRIES_MAX) {
        return false;
    }
    budget->late_entries++;
    return true;
}
