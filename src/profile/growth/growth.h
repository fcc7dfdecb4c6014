// SPDX-License-Identifier: MIT
// growth: memory that was never freed, by call site or stack, and how it grew.
//
// growth_shape.h classifies the history of one process. For stacks of several processes, that is
// the process with the most unfreed bytes, from its beginning to its end. Context: H.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "profile/growth/growth_shape.h"
#include "profile/growth/growth_teardown.h"
#include "profile/time/row_groups.h"

struct growth_entry {
    uint32_t group;          // in growth.groups
    uint32_t process;        // that is judged
    struct growth_held held; // unfreed bytes and blocks of the group, or those of the teardown
    enum growth_class class;
    enum growth_confidence confidence;
    double slope_bytes_per_s; // 0 unless GROWTH_GROWING
    uint64_t slope_ms;        // with work, over which that is the slope; else 0
    uint64_t until_ms;        // if there was no work later: when it grew last; else 0
    bool is_idle_since;       // the process did nothing since it stopped growing
    double slope_error;       // two standard errors of it; 0 if it is exact, or its error unknown
    uint32_t first_slice;     // of the first and last allocation; REC_NONE if unknown
    uint32_t last_slice;
    uint32_t latest_birth_slice; // of blocks never freed; REC_NONE if unknown
};

DEFINE_VEC(growth_entry_vec, struct growth_entry);

struct growth {
    struct row_groups groups;        // owned
    struct growth_entry_vec entries; // owned; those with unfreed blocks, most bytes first
    struct u32_vec teardowns;        // owned; by process: what is held then is judged; or empty
};

// Whether the recording allows a classification.
bool growth_is_known(const struct recording *recording);

// Build the table. Only the first `described_max` entries get class, slope and slices, which take
// time.
enum err growth_build(const struct selection *selection,
                      enum row_group_by by,
                      size_t described_max,
                      struct growth *out) MUST_USE;

// The same of groups that exist already: they move to out->groups. A failure releases them.
// `until_teardown`: of what processes hold when their teardown begins, without those that have
// none.
enum err growth_of_groups(const struct selection *selection,
                          struct row_groups *groups,
                          size_t described_max,
                          bool until_teardown,
                          struct growth *out) MUST_USE;

void growth_release(struct growth *growth);
