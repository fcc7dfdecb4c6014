// SPDX-License-Identifier: MIT
// diff_report: chooses the costs, makes the verdict and formats changes. See diff_report.h.
#include "cli/diff/diff_report.h"

#include <math.h>
#include <stdio.h>

#include "base/compiler.h"
#include "host/text/format.h"

enum {
    HUNDREDTHS_OF_ALL = 10000
};

enum err diff_report_build(const struct comparison *comparison,
                           const struct diff_options *options,
                           struct diff_report *out,
                           struct err_info *info)
{
    static const enum cost usual[] = {COST_PEAK_BYTES, COST_ALLOCATIONS, COST_TEMPORARY,
                                      COST_LEAKED_BYTES};
    struct diff_report report = {.comparison = comparison, .options = options};
    if (options->sort != COST_COUNT && !diff_knows(&comparison->diff, options->sort)) {
        return err_set(info, ERR_UNSUPPORTED, "--sort %s: one of the recordings has no %s",
                       cost_get_info(options->sort)->option, cost_get_info(options->sort)->phrase);
    }
    bool is_usual = options->sort == COST_COUNT;
    report.costs = is_usual ? usual : &options->sort;
    report.cost_count = is_usual ? ARRAY_LEN(usual) : 1;
    double threshold = (double)options->threshold / HUNDREDTHS_OF_ALL;
    enum err problem =
        diff_judge(&comparison->diff, report.costs, report.cost_count, threshold, &report.findings);
    if (problem != ERR_OK) {
        return err_set(info, problem, "not enough memory for the comparison");
    }
    *out = report;
    return ERR_OK;
}

void diff_report_release(struct diff_report *report)
{
    diff_finding_vec_release(&report->findings);
}

struct human diff_format(enum cost cost, double value)
{
    const double whole_from = 1000; // smaller values show the decimals that a division left
    bool is_bytes = cost_get_info(cost)->unit == COST_UNIT_BYTES;
    if (isnan(value)) {
        return (struct human){"unknown"};
    }
    uint64_t rounded = (uint64_t)(value + 0.5);
    if (value >= whole_from || value == (double)rounded) {
        return is_bytes ? format_bytes(rounded) : format_count(rounded);
    }
    struct human out;
    (void)snprintf(out.text, sizeof(out.text), "%.3g%s", value, is_bytes ? " B" : ""); // fits
    return out;
}

struct human diff_format_change(enum cost cost, double change)
{
    struct human size = diff_format(cost, change < 0 ? -change : change);
    struct human out;
    const char *sign = change < 0 ? "-" : change > 0 ? "+" : "";
    (void)snprintf(out.text, sizeof(out.text), "%s%.40s", sign, size.text);
    return out;
}

struct human diff_format_ratio(struct diff_change change)
{
    struct human out = {.text = ""};
    if (change.class == DIFF_SAME) {
        (void)snprintf(out.text, sizeof(out.text), "same");
    } else if (change.class == DIFF_UNKNOWN) {
        (void)snprintf(out.text, sizeof(out.text), "not compared");
    } else if (change.old == 0) {
        (void)snprintf(out.text, sizeof(out.text), "from 0");
    } else {
        (void)snprintf(out.text, sizeof(out.text), "%+.1f%%", change.change / change.old * 100);
    }
    return out;
}
