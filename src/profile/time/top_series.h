// SPDX-License-Identifier: MIT
// top_series: a chart over time: the selection, and the call paths with the highest values.
//
// Groups (call sites or stacks) are ranked by their highest value if the chart shows a level, by
// their sum if it shows a count. Invariant: at every slice, the top groups and `rest` add up to the
// selection.
// The history of groups may be coarser than the selection's. A group's amount in a step is then
// spread over the step as the total is. If the total is below the group's level at the end of the
// step, the group's level is the total.
// Context: H.
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "profile/time/row_groups.h"
#include "profile/time/timeline.h"

enum series_value {
    SERIES_LIVE_BYTES,
    SERIES_ALLOCATIONS,
    SERIES_ALLOCATED_BYTES,
    SERIES_TEMPORARY,
};

struct top_series_entry {
    uint32_t group; // in top_series.groups
    uint64_t score;
    struct u64_vec values; // owned; by slice
    struct u64_vec errors; // owned; two standard errors of each; empty if none are known
};

DEFINE_VEC(top_series_vec, struct top_series_entry);

struct top_series {
    struct row_groups groups;  // owned
    struct timeline timeline;  // owned; of the selection
    struct top_series_vec top; // owned; highest score first
    struct u64_vec rest;       // owned; by slice
    struct u64_vec rest_errors;
    struct timeline_errors errors; // of `timeline`
};

enum err top_series_build(const struct selection *selection,
                          enum series_value value,
                          enum row_group_by by,
                          size_t top_count,
                          struct top_series *out) MUST_USE;
void top_series_release(struct top_series *series);

// The value of a point that `value` selects.
uint64_t series_value_of(const struct timeline_point *point, enum series_value value);
