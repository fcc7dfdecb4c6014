// SPDX-License-Identifier: MIT
// finding_changes: what became of each finding from one recording to another.
//
//   old: growth of audit   new: -                 gone
//   old: peak of load      new: peak of load      grown, shrunk or same, by its figure
//   old: -                 new: churn of split    new, or grown if the old figure was above 0
//
// Findings of both recordings are one if they are of the same kind and about the same function; one
// about the whole program needs only the kind. The figure of a finding on a cost is that of the
// comparison, so it has an old value although the old recording has no such finding. Growth is a
// property rather than a figure: it is new or gone with its finding. A change counts only beyond
// its error and beyond the threshold, which is a ratio of the old value. The largest change is
// first; changes are weighed as findings are ranked, so that churn does not hide a leak.
// Context: H; pure. A part of the run has no findings (findings.h), and no changes of them.
#pragma once

#include "base/err.h"
#include "profile/compare/diff.h"
#include "profile/findings/findings.h"

struct finding_change {
    enum diff_class class;
    enum cost cost;                       // of the figure; COST_COUNT: bytes of the findings
    const struct finding *of[SIDE_COUNT]; // in `findings`; NULL: that side has none
    uint32_t function;                    // id in the union; REC_NONE: the whole program
    struct diff_change change;            // old or new is NAN where it is not known
    double weight;                        // of a changed byte
};

DEFINE_VEC(finding_change_vec, struct finding_change);

struct finding_changes {
    struct findings findings[SIDE_COUNT]; // owned
    struct finding_change_vec items;      // owned; the largest change first, unchanged ones last
};

// Find the changes of all findings. `diff` must be of these selections. ERR_NO_MEMORY.
enum err finding_changes_build(const struct diff *diff,
                               const struct selection *new,
                               const struct selection *old,
                               double threshold,
                               struct finding_changes *out) MUST_USE;
void finding_changes_release(struct finding_changes *changes);

// The side whose finding and sentence are shown: the new one, unless only the old one has it.
static inline enum side finding_change_side(const struct finding_change *change)
{
    return change->of[SIDE_NEW] != NULL ? SIDE_NEW : SIDE_OLD;
}
