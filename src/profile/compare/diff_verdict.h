// SPDX-License-Identifier: MIT
// diff_verdict: the findings of a comparison: what grew beyond a threshold.
//
// Each judged cost is tested twice. The whole may have grown beyond the threshold; that alone fails
// a comparison. One function may have grown by that much of the whole while others shrank, as when
// code moves. The threshold is a ratio of the whole's old value; if that is 0, any growth exceeds
// it. Context: H; pure.
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "host/text/strbuf.h"
#include "profile/compare/diff.h"

struct diff_finding {
    enum cost cost;
    uint32_t entry; // of the diff; REC_NONE: the whole
    struct diff_change change;
};

DEFINE_VEC(diff_finding_vec, struct diff_finding);

// The costs that are judged unless the user names one.
enum {
    DIFF_JUDGED_COSTS = 4,
    DIFF_THRESHOLD_UNIT = 10000, // thresholds in text are in hundredths of a percent
    DIFF_THRESHOLD_USUAL = 100,
};
extern const enum cost diff_judged_costs[DIFF_JUDGED_COSTS];

// List the findings of each cost: the whole first, then entries by growth.
enum err diff_judge(const struct diff *diff,
                    const enum cost *costs,
                    size_t cost_count,
                    double threshold,
                    struct diff_finding_vec *out) MUST_USE;

// Whether the whole of a cost is among the findings.
bool diff_has_grown(const struct diff_finding_vec *findings);

// A judgement, for its sentence. All pointers are borrowed.
struct diff_verdict {
    const struct diff_finding_vec *findings;
    const enum cost *costs; // that were judged
    size_t cost_count;
    uint64_t threshold; // in hundredths of a percent
};

// Append "nothing grew beyond 1%", or "grew beyond 1%: peak +6.80 MiB (+11.9%)" with each cost
// whose total grew. For other costs the function that grew most follows: "; in one function:
// temporary of load +12 (...)". Then follow costs that could not be judged, and renamed functions.
// Names are the recording's, not made safe.
void diff_verdict_append(const struct diff *diff,
                         const struct diff_verdict *verdict,
                         struct strbuf *out);
