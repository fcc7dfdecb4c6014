// SPDX-License-Identifier: MIT
// diff_report: chooses the costs and makes the verdict. See diff_report.h.
#include "cli/diff/diff_report.h"

#include "base/compiler.h"

enum err diff_report_build(const struct comparison *comparison,
                           const struct diff_options *options,
                           struct diff_report *out,
                           struct err_info *info)
{
    struct diff_report report = {.comparison = comparison, .options = options};
    if (options->sort != COST_COUNT && !diff_knows(&comparison->diff, options->sort)) {
        return err_set(info, ERR_UNSUPPORTED, "--sort %s: one of the recordings has no %s",
                       cost_get_info(options->sort)->option, cost_get_info(options->sort)->phrase);
    }
    bool is_usual = options->sort == COST_COUNT;
    report.costs = is_usual ? diff_judged_costs : &options->sort;
    report.cost_count = is_usual ? DIFF_JUDGED_COSTS : 1;
    double threshold = (double)options->threshold / DIFF_THRESHOLD_UNIT;
    TRY(diff_judge(&comparison->diff, report.costs, report.cost_count, threshold,
                   &report.findings));
    *out = report;
    return ERR_OK;
}

void diff_report_release(struct diff_report *report)
{
    diff_finding_vec_release(&report->findings);
}
