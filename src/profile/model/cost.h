// SPDX-License-Identifier: MIT
// cost: every quantity that a query can ask for, in one table.
//
// Every face (report, JSON, viewer, exporters) names, sorts and adds up costs through this table,
// so a new cost is one line here. All costs are additive over rows. For COST_OWN_PEAK_BYTES the sum
// is an upper bound: rows may have reached their own peaks at different times. Context: H; pure.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "host/containers/vec.h"
#include "recording/format/tables.h"

enum cost {
    COST_PEAK_BYTES,      // live at the global peak
    COST_PEAK_BLOCKS,     // blocks live at the global peak
    COST_ALLOCATIONS,     // successful allocation calls
    COST_ALLOCATED_BYTES, // requested bytes
    COST_FREES,           // of blocks allocated here, whichever thread freed them
    COST_FREED_BYTES,
    COST_TEMPORARY, // allocations that their thread's next event freed
    COST_TEMPORARY_BYTES,
    COST_LEAKED_BYTES,       // live at the end
    COST_LEAKED_ALLOCATIONS, // blocks live at the end
    COST_OWN_PEAK_BYTES,     // the highest live bytes of each stack alone
    COST_COUNT,
};

enum cost_unit {
    COST_UNIT_BYTES,
    COST_UNIT_CALLS,
};

struct cost_info {
    const char *key;    // in JSON, URLs, CSV, SQLite and stores: snake_case
    const char *option; // after --sort
    const char *phrase; // in the report: "... of <phrase>"
    enum cost_unit unit;
};

// The sizes of the blocks of some rows, on which the error of their number depends. Only for rows
// that were sampled by bytes. The length of a block is its size and one byte
// (target/producer/byte_sampler.h).
struct sampled_sizes {
    double inverse_lengths;   // sum of 1 / length of all allocations, rounded up
    uint64_t shortest_length; // at most the shortest; 0: no allocations
};

struct costs {
    uint64_t values[COST_COUNT];
    struct sampled_sizes sizes; // at least of the blocks that are counted
};

DEFINE_VEC(costs_vec, struct costs);
DEFINE_VEC(sampled_sizes_vec, struct sampled_sizes);

// The description of `cost`, which must be below COST_COUNT. Never NULL, static.
const struct cost_info *cost_get_info(enum cost cost);

// The names after --sort, for a sentence. A test compares them with the table.
#define COST_OPTION_NAMES                                                           \
    "peak, allocations, temporary, leaked, allocated, peak-blocks, leaked-blocks, " \
    "temporary-bytes, own-peak, frees or freed"

// Find a cost by its key or its option. Return COST_COUNT for an unknown name.
enum cost cost_find(const char *name);

static inline uint64_t costs_get(const struct costs *costs, enum cost cost)
{
    return costs->values[cost];
}

// Whether any cost is not 0.
bool costs_any(const struct costs *costs);

static inline void sampled_sizes_add(struct sampled_sizes *sum, const struct sampled_sizes *part)
{
    sum->inverse_lengths += part->inverse_lengths;
    if (part->shortest_length != 0 &&
        (sum->shortest_length == 0 || part->shortest_length < sum->shortest_length)) {
        sum->shortest_length = part->shortest_length;
    }
}

// Inline: an answer about a million stacks adds several millions of them.
static inline void costs_add(struct costs *sum, const struct costs *part)
{
    for (int cost = 0; cost < COST_COUNT; cost++) {
        sum->values[cost] += part->values[cost];
    }
    sampled_sizes_add(&sum->sizes, &part->sizes);
}

// All costs of one row. A damaged row may claim more frees than allocations; its leaks are then 0.
struct costs costs_of_row(const struct rec_row *row);
