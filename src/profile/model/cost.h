// SPDX-License-Identifier: MIT
// cost: what can be asked about memory, as one table of numbers.
//
// Every face (report, JSON, viewer, exporters) names, sorts and adds up costs through this table,
// so that a new cost is one line here. All costs are additive over rows. For COST_OWN_PEAK_BYTES
// the sum is an upper bound: rows need not have had their own peaks at the same moment. Context: H;
// pure.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "host/containers/vec.h"
#include "recording/format/tables.h"

enum cost {
    COST_PEAK_BYTES,      // live at the moment of the global peak
    COST_PEAK_BLOCKS,     // blocks live at that moment
    COST_ALLOCATIONS,     // successful allocation calls
    COST_ALLOCATED_BYTES, // bytes that they asked for
    COST_FREES,           // of blocks that were allocated here, whoever freed them
    COST_FREED_BYTES,
    COST_TEMPORARY, // allocations whose thread's next event was their own free
    COST_TEMPORARY_BYTES,
    COST_LEAKED_BYTES,       // live at the end
    COST_LEAKED_ALLOCATIONS, // blocks live at the end
    COST_OWN_PEAK_BYTES,     // highest that each stack alone ever held
    COST_COUNT,
};

enum cost_unit {
    COST_UNIT_BYTES,
    COST_UNIT_CALLS,
};

struct cost_info {
    const char *key;    // as in JSON and in URLs: snake_case
    const char *option; // as typed after --sort
    const char *phrase; // for people: "... of <phrase>"
    enum cost_unit unit;
};

struct costs {
    uint64_t values[COST_COUNT];
};

DEFINE_VEC(costs_vec, struct costs);

// The description of `cost`, which must be below COST_COUNT. Never NULL, static.
const struct cost_info *cost_get_info(enum cost cost);

// The names of all costs as typed, for a sentence. A test holds it against the table.
#define COST_OPTION_NAMES                                                           \
    "peak, allocations, temporary, leaked, allocated, peak-blocks, leaked-blocks, " \
    "temporary-bytes, own-peak, frees or freed"

// The cost called `name` (its key or its option), or COST_COUNT if there is none.
enum cost cost_find(const char *name);

static inline uint64_t costs_get(const struct costs *costs, enum cost cost)
{
    return costs->values[cost];
}

// Whether any of them is not 0.
bool costs_any(const struct costs *costs);

void costs_add(struct costs *sum, const struct costs *part);

// All costs of one row. What a damaged row claims to have freed beyond what it allocated counts as
// nothing leaked.
struct costs costs_of_row(const struct rec_row *row);
