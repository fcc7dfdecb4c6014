// SPDX-License-Identifier: MIT
// growth: what was never freed, by call site or stack, and how it came to be so much.
//
// How, growth_shape.h says of the history of one process: where stacks of several did not free, of
// the one that left most, from its beginning to its end. Context: H.
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "profile/time/growth_shape.h"
#include "profile/time/row_groups.h"

struct growth_entry {
    uint32_t group; // in growth.groups
    enum growth_class class;
    enum growth_confidence confidence;
    double slope_bytes_per_s; // 0 unless GROWTH_GROWING
    uint32_t first_slice;     // of its first and last allocation; REC_NONE if unknown
    uint32_t last_slice;
    uint32_t latest_birth_slice; // of what was never freed; REC_NONE if unknown
};

DEFINE_VEC(growth_entry_vec, struct growth_entry);

struct growth {
    struct row_groups groups;        // owned
    struct growth_entry_vec entries; // owned; those with anything unfreed, most bytes first
};

// Whether classes can be told at all.
bool growth_is_known(const struct recording *recording);

// Describes (class, slope, slices) the first `described_max` entries only: that is what takes time.
enum err growth_build(const struct selection *selection,
                      enum row_group_by by,
                      size_t described_max,
                      struct growth *out) MUST_USE;
void growth_release(struct growth *growth);
