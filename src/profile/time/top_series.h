// SPDX-License-Identifier: MIT
// top_series: a chart over time: the selection, and the call paths that have most of it.
//
// Groups (call sites or stacks) are ranked by the highest that they ever held, or by their sum if
// what is drawn is not a level but a count. Invariant: at every slice, the values of the top groups
// and `rest` add up to the selection's. Where the history of groups is coarser than the
// selection's, what a group did in a step is spread over the step as all was, and where all
// together had less than a group had at the end of the step, the group had no more. Context: H.
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
};

DEFINE_VEC(top_series_vec, struct top_series_entry);

struct top_series {
    struct row_groups groups;  // owned
    struct timeline timeline;  // owned; of the selection
    struct top_series_vec top; // owned; highest score first
    struct u64_vec rest;       // owned; by slice
};

enum err top_series_build(const struct selection *selection,
                          enum series_value value,
                          enum row_group_by by,
                          size_t top_count,
                          struct top_series *out) MUST_USE;
void top_series_release(struct top_series *series);

// The value of a point that `value` names.
uint64_t series_value_of(const struct timeline_point *point, enum series_value value);
