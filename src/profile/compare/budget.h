// SPDX-License-Identifier: MIT
// budget: the limits of a program's memory use, and whether a selection kept to them.
//
// A measure is one figure of a summary, so a budget and the report always agree. Context: H; pure.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "profile/tables/summary.h"

enum budget_measure {
    BUDGET_PEAK,
    BUDGET_ALLOCATIONS,
    BUDGET_ALLOCATED,
    BUDGET_LEAKED,
    BUDGET_TEMPORARY_SHARE,
    BUDGET_RSS,
    BUDGET_MEASURE_COUNT,
};

enum budget_unit {
    BUDGET_BYTES,
    BUDGET_CALLS,
    BUDGET_HUNDREDTHS, // of a percent
};

struct budget_info {
    const char *name; // as typed: "max-peak"
    enum budget_unit unit;
    enum cost cost;  // ranks the functions responsible
    bool has_stacks; // the figure applies to a filtered part and has call sites
};

// Never NULL, static.
const struct budget_info *budget_get_info(enum budget_measure measure);

// Find a measure by its name. Return BUDGET_MEASURE_COUNT for an unknown name.
enum budget_measure budget_find(const char *name);

// Whether the selection knows the costs behind the measure.
bool budget_is_known(const struct selection *selection,
                     const struct summary *summary,
                     enum budget_measure measure);

// The figure in the measure's unit; a share is rounded down.
uint64_t budget_value(const struct summary *summary, enum budget_measure measure);

// Whether the figure exceeds the limit. The comparison is exact, without rounding.
bool budget_is_broken(const struct summary *summary, enum budget_measure measure, uint64_t limit);
