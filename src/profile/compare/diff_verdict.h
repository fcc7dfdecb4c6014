// SPDX-License-Identifier: MIT
// diff_verdict: whether a comparison found that something grew, and what.
//
// For each cost that is judged, the whole may have grown beyond the threshold, or one function by
// that much of the whole while others shrank. The threshold is a ratio of what the whole was
// before; from nothing, any growth is beyond it. Context: H; pure.
#pragma once

#include "base/err.h"
#include "profile/compare/diff.h"

struct diff_finding {
    enum cost cost;
    uint32_t entry; // of the diff; REC_NONE: the whole
    struct diff_change change;
};

DEFINE_VEC(diff_finding_vec, struct diff_finding);

// The findings of each cost, the whole first, then entries by growth. Nothing found is success.
enum err diff_judge(const struct diff *diff,
                    const enum cost *costs,
                    size_t cost_count,
                    double threshold,
                    struct diff_finding_vec *out) MUST_USE;
