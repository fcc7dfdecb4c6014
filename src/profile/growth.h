// SPDX-License-Identifier: MIT
// growth: what is alive at the end, by call site or stack, and how it came to be so much.
//
// The run is cut into four quarters of time slices. By what was live at the slices' ends:
//   LATE      nothing was live before the last quarter
//   START_UP  no block that is alive at the end was allocated after the first quarter
//   GROWING   from the second quarter on, the lowest of each is above that of the one before, by a
//             tenth or more of the second's in all
//   STEADY    anything else
//   UNKNOWN   fewer than eight slices, or no cells
// in this order of precedence. The slope is the least-squares line through the slice ends of the
// last three quarters. Context: H.
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "host/vec.h"
#include "profile/row_groups.h"

enum growth_class {
    GROWTH_UNKNOWN,
    GROWTH_GROWING,
    GROWTH_START_UP,
    GROWTH_LATE,
    GROWTH_STEADY,
    GROWTH_COUNT,
};

// As in JSON: snake_case. Static.
const char *growth_class_name(enum growth_class class);

struct growth_entry {
    uint32_t group; // in growth.groups
    enum growth_class class;
    double slope_bytes_per_s;
    uint32_t first_slice; // of its first and last allocation; REC_NONE if unknown
    uint32_t last_slice;
};

DEFINE_VEC(growth_entry_vec, struct growth_entry);

struct growth {
    struct row_groups groups;        // owned
    struct growth_entry_vec entries; // owned; those with anything alive, most bytes first
};

// Whether classes can be told at all.
bool growth_is_known(const struct recording *recording);

// Describes (class, slope, slices) the first `described_max` entries only: that is what takes time.
enum err growth_build(const struct selection *selection,
                      enum row_group_by by,
                      size_t described_max,
                      struct growth *out) MUST_USE;
void growth_release(struct growth *growth);
