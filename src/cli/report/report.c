// SPDX-License-Identifier: MIT
// report: runs the queries of a report. See report.h.
#include "cli/report/report.h"

#include "base/compiler.h"
#include "cli/diff/comparison.h"

// Build the growth of call sites. It takes as long as all other queries together, so only reports
// of leaks have it.
static MUST_USE enum err build_growth(struct report *report)
{
    const struct report_options *options = report->options;
    const bool is_by_bytes =
        options->sort == COST_LEAKED_BYTES || (options->sections & REPORT_LEAKED) != 0;
    if ((!is_by_bytes && options->sort != COST_LEAKED_ALLOCATIONS) || options->filter.has_range ||
        !growth_is_known(&report->profile->recording)) {
        return ERR_OK;
    }
    const bool is_limited = is_by_bytes && options->site_limit != 0;
    return growth_build(&report->selection,
                        options->is_data ? ROW_GROUPS_BY_SITE : ROW_GROUPS_BY_SITE_ALONE,
                        is_limited ? options->site_limit : SIZE_MAX, &report->growth);
}

const struct growth_entry *report_growth(const struct report *report, uint32_t site)
{
    const struct growth_entry_vec *entries = &report->growth.entries;
    for (size_t i = 0; i < entries->len; i++) {
        const struct growth_entry *entry = &entries->items[i];
        if (entry->group == site) { // groups are in the order of sites
            return entry->class != GROWTH_UNKNOWN ? entry : NULL;
        }
    }
    return NULL;
}

// Run the queries of a report on its selection.
static MUST_USE enum err build_parts(struct report *report)
{
    const struct report_options *options = report->options;
    TRY(summary_build(&report->selection, &report->summary));
    TRY(options->without_stacks ? call_sites_build_alone(&report->selection, &report->sites)
                                : call_sites_build(&report->selection, &report->sites));
    TRY(rss_breakdown_build(report->profile, options->filter.pid, &report->rss_breakdown));
    TRY(build_growth(report));
    if (report_is_screen(options) || options->sections == REPORT_ALL) {
        TRY(findings_build(&report->selection, &report->summary, &report->rss_breakdown,
                           &report->findings));
    }
    const bool needs_code = options->views != 0 || options->is_data;
    return needs_code && options->comparison == NULL
               ? code_union_build(report->profile, NULL, &report->alone)
               : ERR_OK;
}

// Refuse to sort by a cost that the answer does not know.
static MUST_USE enum err check_sort(const struct report *report, struct err_info *info)
{
    const struct report_options *options = report->options;
    char who[48];
    if (options->sort == COST_COUNT) {
        return ERR_OK;
    }
    const struct cost_info *cost = cost_get_info(options->sort);
    (void)snprintf(who, sizeof(who), "--sort %s", cost->option); // fits
    TRY(selection_need(&report->selection, who, options->sort, info));
    if (options->comparison != NULL) {
        TRY(selection_need(&options->comparison->selections[SIDE_OLD], who, options->sort, info));
    }
    if ((options->views & REPORT_GROUPS) != 0 &&
        (cost_groups_unknown(&report->selection, options->group_by) >> options->sort & 1) != 0) {
        return err_set(info, ERR_UNSUPPORTED, "%s: groups by %s have no data on %s", who,
                       cost_group_by_name(options->group_by), cost->phrase);
    }
    return ERR_OK;
}

enum err report_build(const struct profile *profile,
                      const struct report_options *options,
                      struct report *out,
                      struct err_info *info)
{
    CLEANUP(report_release) struct report report = {.options = options, .profile = profile};
    TRY(profile_select(profile, &options->filter, &report.selection, info));
    TRY(check_sort(&report, info));
    report.selection.progress = options->progress;
    const enum err problem = build_parts(&report);
    if (options->progress != NULL) {
        progress_clear(options->progress);
    }
    TRY(problem);
    *out = TAKE(report);
    out->code = options->comparison != NULL ? &options->comparison->code : &out->alone;
    return ERR_OK;
}

void report_release(struct report *report)
{
    selection_release(&report->selection);
    call_sites_release(&report->sites);
    code_union_release(&report->alone);
    rss_breakdown_release(&report->rss_breakdown);
    growth_release(&report->growth);
    findings_release(&report->findings);
}

size_t report_sections(const struct report *report, enum cost out[REPORT_COSTS])
{
    static const struct {
        enum cost cost;
        uint32_t section;
    } usual[REPORT_COSTS] = {{COST_PEAK_BYTES, REPORT_PEAK},
                             {COST_ALLOCATIONS, REPORT_ALLOCATIONS},
                             {COST_TEMPORARY, REPORT_TEMPORARY},
                             {COST_LEAKED_BYTES, REPORT_LEAKED}};
    const struct report_options *options = report->options;
    size_t count = 0;
    if (options->sort != COST_COUNT) {
        out[count++] = options->sort;
        return count;
    }
    for (size_t i = 0; i < REPORT_COSTS; i++) {
        if (options->sections == 0 || (options->sections & usual[i].section) != 0) {
            out[count++] = usual[i].cost;
        }
    }
    return count;
}
