// SPDX-License-Identifier: MIT
// cost: the table of costs and arithmetic on struct costs. See cost.h.
#include "profile/model/cost.h"

#include <string.h>

#include "base/minmax.h"

static const struct cost_info cost_infos[COST_COUNT] = {
    [COST_PEAK_BYTES] = {"peak_bytes", "peak", "bytes live at the peak", COST_UNIT_BYTES},
    [COST_PEAK_BLOCKS] = {"peak_blocks", "peak-blocks", "blocks live at the peak", COST_UNIT_CALLS},
    [COST_ALLOCATIONS] = {"allocations", "allocations", "allocation calls", COST_UNIT_CALLS},
    [COST_ALLOCATED_BYTES] = {"allocated_bytes", "allocated", "bytes allocated over time",
                              COST_UNIT_BYTES},
    [COST_FREES] = {"frees", "frees", "blocks freed", COST_UNIT_CALLS},
    [COST_FREED_BYTES] = {"freed_bytes", "freed", "bytes freed", COST_UNIT_BYTES},
    [COST_TEMPORARY] = {"temporary", "temporary", "temporary allocations", COST_UNIT_CALLS},
    [COST_TEMPORARY_BYTES] = {"temporary_bytes", "temporary-bytes",
                              "bytes in temporary allocations", COST_UNIT_BYTES},
    [COST_LEAKED_BYTES] = {"live_bytes", "leaked", "bytes never freed", COST_UNIT_BYTES},
    [COST_LEAKED_ALLOCATIONS] = {"live_blocks", "leaked-blocks", "blocks never freed",
                                 COST_UNIT_CALLS},
    [COST_OWN_PEAK_BYTES] = {"own_peak_bytes", "own-peak", "bytes at each stack's own peak",
                             COST_UNIT_BYTES},
};

const struct cost_info *cost_get_info(enum cost cost)
{
    return &cost_infos[cost];
}

enum cost cost_find(const char *name)
{
    for (int cost = 0; cost < COST_COUNT; cost++) {
        const struct cost_info *info = &cost_infos[cost];
        if (strcmp(name, info->key) == 0 || strcmp(name, info->option) == 0) {
            return (enum cost)cost;
        }
    }
    return COST_COUNT;
}

bool costs_any(const struct costs *costs)
{
    for (int cost = 0; cost < COST_COUNT; cost++) {
        if (costs->values[cost] > 0) {
            return true;
        }
    }
    return false;
}

struct costs costs_of_row(const struct rec_row *row)
{
    return (struct costs){
        .values = {
            [COST_PEAK_BYTES] = row->peak_bytes,
            [COST_PEAK_BLOCKS] = row->peak_blocks,
            [COST_ALLOCATIONS] = row->allocations,
            [COST_ALLOCATED_BYTES] = row->allocated_bytes,
            [COST_FREES] = row->frees,
            [COST_FREED_BYTES] = row->freed_bytes,
            [COST_TEMPORARY] = row->temporary,
            [COST_TEMPORARY_BYTES] = row->temporary_bytes,
            [COST_LEAKED_BYTES] = excess_u64(row->allocated_bytes, row->freed_bytes),
            [COST_LEAKED_ALLOCATIONS] = excess_u64(row->allocations, row->frees),
            [COST_OWN_PEAK_BYTES] = row->own_peak_bytes,
        }};
}
