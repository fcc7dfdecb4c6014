// SPDX-License-Identifier: MIT
// budget: see budget.h.
#include "profile/compare/budget.h"

#include <string.h>

static const uint64_t hundredths_of_all = 10000;

static const struct budget_info infos[BUDGET_MEASURE_COUNT] = {
    [BUDGET_PEAK] = {"max-peak", BUDGET_BYTES, COST_PEAK_BYTES, true},
    [BUDGET_ALLOCATIONS] = {"max-allocations", BUDGET_CALLS, COST_ALLOCATIONS, true},
    [BUDGET_ALLOCATED] = {"max-allocated", BUDGET_BYTES, COST_ALLOCATED_BYTES, true},
    [BUDGET_LEAKED] = {"max-leaked", BUDGET_BYTES, COST_LEAKED_BYTES, true},
    [BUDGET_TEMPORARY_SHARE] = {"max-temporary-share", BUDGET_HUNDREDTHS, COST_TEMPORARY, true},
    [BUDGET_RSS] = {"max-rss", BUDGET_BYTES, COST_PEAK_BYTES, false},
};

const struct budget_info *budget_get_info(enum budget_measure measure)
{
    return &infos[measure];
}

enum budget_measure budget_find(const char *name)
{
    for (int measure = 0; measure < BUDGET_MEASURE_COUNT; measure++) {
        if (strcmp(infos[measure].name, name) == 0) {
            return (enum budget_measure)measure;
        }
    }
    return BUDGET_MEASURE_COUNT;
}

bool budget_is_known(const struct selection *selection,
                     const struct summary *summary,
                     enum budget_measure measure)
{
    switch (measure) {
    case BUDGET_TEMPORARY_SHARE:
        return selection_knows(selection, COST_TEMPORARY) &&
               selection_knows(selection, COST_ALLOCATIONS);
    case BUDGET_RSS:
        return summary->peak_rss_bytes > 0;
    case BUDGET_PEAK:
    case BUDGET_ALLOCATIONS:
    case BUDGET_ALLOCATED:
    case BUDGET_LEAKED:
    case BUDGET_MEASURE_COUNT:
        break;
    }
    return selection_knows(selection, infos[measure].cost);
}

uint64_t budget_value(const struct summary *summary, enum budget_measure measure)
{
    uint64_t all = costs_get(&summary->costs, COST_ALLOCATIONS);
    uint64_t temporary = costs_get(&summary->costs, COST_TEMPORARY);
    switch (measure) {
    case BUDGET_PEAK:
    case BUDGET_ALLOCATIONS:
    case BUDGET_ALLOCATED:
    case BUDGET_LEAKED:
        return costs_get(&summary->costs, infos[measure].cost);
    case BUDGET_TEMPORARY_SHARE:
        return all > 0 ? (uint64_t)((unsigned __int128)temporary * hundredths_of_all / all) : 0;
    case BUDGET_RSS:
        return summary->peak_rss_bytes;
    case BUDGET_MEASURE_COUNT:
        break;
    }
    return 0;
}

bool budget_is_broken(const struct summary *summary, enum budget_measure measure, uint64_t limit)
{
    if (measure == BUDGET_TEMPORARY_SHARE) {
        unsigned __int128 temporary = costs_get(&summary->costs, COST_TEMPORARY);
        unsigned __int128 all = costs_get(&summary->costs, COST_ALLOCATIONS);
        return temporary * hundredths_of_all > all * limit;
    }
    return budget_value(summary, measure) > limit;
}
