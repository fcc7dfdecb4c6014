// SPDX-License-Identifier: MIT
// diff_verdict: the findings of a comparison: what grew beyond a threshold.
//
// Each judged cost is tested twice. The whole may have grown beyond the threshold. One function may
// have grown by that much of the whole while others shrank. The threshold is a ratio of the whole's
// old value; if that is 0, any growth exceeds it. Context: H; pure.
#pragma once

#include "base/err.h"
#include "profile/compare/diff.h"

struct diff_finding {
    enum cost cost;
    uint32_t entry; // of the diff; REC_NONE: the whole
    struct diff_change change;
};

DEFINE_VEC(diff_finding_vec, struct diff_finding);

// List the findings of each cost: the whole first, then entries by growth. An empty list is
// success.
enum err diff_judge(const struct diff *diff,
                    const enum cost *costs,
                    size_t cost_count,
                    double threshold,
                    struct diff_finding_vec *out) MUST_USE;
