// SPDX-License-Identifier: MIT
// diff_verdict: see diff_verdict.h.
#include "profile/compare/diff_verdict.h"

#include "base/compiler.h"

static MUST_USE enum err
judge_cost(const struct diff *diff, enum cost cost, double threshold, struct diff_finding_vec *out)
{
    struct diff_finding whole = {
        .cost = cost, .entry = REC_NONE, .change = diff_total_change(diff, cost)};
    if (diff_is_beyond(diff, cost, whole.change.change, threshold)) {
        TRY(diff_finding_vec_push(out, whole));
    }
    CLEANUP(u32_vec_release) struct u32_vec ids = {0};
    TRY(diff_ranked(diff, cost, &ids));
    for (size_t i = 0; i < ids.len; i++) {
        struct diff_finding part = {.cost = cost,
                                    .entry = ids.items[i],
                                    .change = diff_entry_change(diff, ids.items[i], cost)};
        if (diff_is_beyond(diff, cost, part.change.change, threshold)) {
            TRY(diff_finding_vec_push(out, part));
        }
    }
    return ERR_OK;
}

enum err diff_judge(const struct diff *diff,
                    const enum cost *costs,
                    size_t cost_count,
                    double threshold,
                    struct diff_finding_vec *out)
{
    CLEANUP(diff_finding_vec_release) struct diff_finding_vec findings = {0};
    for (size_t i = 0; i < cost_count; i++) {
        TRY(judge_cost(diff, costs[i], threshold, &findings));
    }
    *out = findings;
    findings = (struct diff_finding_vec){0};
    return ERR_OK;
}
