// SPDX-License-Identifier: MIT
// budget: what a program may use at most, and whether a selection kept to it.
//
// A measure is one figure of a summary, so that a budget and the report never differ. Context: H;
// pure.
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
    enum cost cost;  // by which those responsible are ranked
    bool has_stacks; // the figure can be asked for a part of the program, and be blamed on it
};

// Never NULL, static.
const struct budget_info *budget_get_info(enum budget_measure measure);

// The measure of that name, BUDGET_MEASURE_COUNT if there is none.
enum budget_measure budget_find(const char *name);

// Whether the selection knows what the measure is made of.
bool budget_is_known(const struct selection *selection,
                     const struct summary *summary,
                     enum budget_measure measure);

// The figure, in the measure's unit; a share is rounded down.
uint64_t budget_value(const struct summary *summary, enum budget_measure measure);

// Whether the figure is above the limit, exactly.
bool budget_is_broken(const struct summary *summary, enum budget_measure measure, uint64_t limit);
