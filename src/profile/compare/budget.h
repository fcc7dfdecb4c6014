// SPDX-License-Identifier: MIT
// budget: the limits of a program's memory use, and whether a selection kept to them.
//
// A measure is one figure of a summary, so a budget and the report always agree. Of a sampled
// recording, the number of allocations and their bytes are the exact totals, unless the selection
// is a part. Other figures are estimates: a budget is only broken or kept if that is certain within
// their errors. Context: H; pure.
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

// A figure in the measure's unit, and its bounds: of an estimate, they hold in about 95 of 100
// recordings; of an exact figure, both are the figure. A share is rounded down.
struct budget_figure {
    uint64_t value;
    uint64_t at_least;
    uint64_t at_most;
    uint64_t error; // two standard errors of the value; 0: exact, a peak, or unknown
    bool is_estimate;
};

struct budget_figure budget_figure_of(const struct selection *selection,
                                      const struct summary *summary,
                                      enum budget_measure measure);

enum budget_verdict {
    BUDGET_KEPT,
    BUDGET_UNCERTAIN, // the limit is within the bounds of the figure; counts as kept
    BUDGET_BROKEN,
};

// Compare the figure with the limit: exactly, without rounding, if it is exact.
enum budget_verdict budget_judge(const struct selection *selection,
                                 const struct summary *summary,
                                 enum budget_measure measure,
                                 uint64_t limit);
