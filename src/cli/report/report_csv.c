// SPDX-License-Identifier: MIT
// report_csv: prints one table of the report as CSV: the view or the section that was requested,
// without one the call sites by memory at the peak.
//
// The writers of src/views_json write it, so that names and figures are those of the JSON.
#include "base/compiler.h"
#include "cli/report/report.h"
#include "cli/report/report_views.h"
#include "views_json/layout/view_csv.h"
#include "views_json/views/view_parts.h"
#include "views_json/views/views.h"

static MUST_USE enum err write_sites(const struct report *report, struct view *view)
{
    const struct call_sites_options options = {.sites = &report->sites,
                                               .limit = report->options->site_limit};
    return view_site_list(view, "sites", &options);
}

static MUST_USE enum err write_leaks(const struct report *report, struct view *view)
{
    const struct leaks_options options = {.growth = report->growth.entries.len > 0 ? &report->growth
                                                                                   : NULL,
                                          .by = ROW_GROUPS_BY_SITE,
                                          .limit = report->options->site_limit};
    return view_leaks(view, &options);
}

static MUST_USE enum err write_rss(const struct report *report, struct view *view)
{
    CLEANUP(flag_vec_release) struct flag_vec details = {0};
    TRY(flag_vec_resize(&details, report->rss_breakdown.splits.len));
    return view_rss(view, &report->rss_breakdown, &details);
}

static MUST_USE enum err write_blocks(const struct report *report, struct view *view)
{
    const struct blocks_options options = {.lists_blocks = true,
                                           .limit = report->options->site_limit};
    return view_blocks(view, &options);
}

// The first entry that was requested is written.
static const struct choice {
    uint32_t views;
    uint32_t sections;
    bool is_blocks;
    struct view_csv csv;
    enum err (*write)(const struct report *report, struct view *view);
} choices[] = {
    {.is_blocks = true,
     .csv = {.keys = {"end", "peak"}, .tags = {{.name = "live_at"}}},
     .write = write_blocks},
    {.views = REPORT_GROUPS, .csv = {.keys = {"groups"}}, .write = report_groups_json},
    {.views = REPORT_FUNCTIONS, .csv = {.keys = {"functions"}}, .write = report_functions_json},
    {.views = REPORT_CALLERS,
     .csv = {.keys = {"callers", "callees"}, .tags = {{.name = "of"}, {.name = "table"}}},
     .write = report_callers_json},
    {.views = REPORT_TREE, .csv = {.keys = {"nodes"}}, .write = report_tree_json},
    {.views = REPORT_HISTOGRAMS,
     .csv = {.keys = {"buckets"}, .tags = {{.name = "histogram"}}},
     .write = report_histograms_json},
    {.sections = REPORT_LEAKED, .csv = {.keys = {"leaks"}}, .write = write_leaks},
    {.sections = REPORT_RSS, .csv = {.keys = {"breakdowns"}}, .write = write_rss},
    {.csv = {.keys = {"sites"}}, .write = write_sites},
};

static const struct choice *choose_table(const struct report_options *options)
{
    size_t i = 0;
    while ((choices[i].views & options->views) != choices[i].views ||
           (choices[i].sections & options->sections) != choices[i].sections ||
           (choices[i].is_blocks && !options->lists_blocks)) {
        i++; // the last one matches always
    }
    return &choices[i];
}

enum err report_write_csv(const struct report *report, FILE *out)
{
    const struct choice *choice = choose_table(report->options);
    enum cost costs[REPORT_COSTS];
    struct view_csv csv = choice->csv;
    struct json_writer w;
    (void)report_sections(report, costs); // at least one
    const bool is_section = report->options->views == 0 && report->options->sections != 0;
    csv.out = out;
    view_csv_drop(&w);
    CLEANUP(view_release)
    struct view view = {
        .profile = report->profile,
        .code = report->code,
        .selection = &report->selection,
        .old_selection = report_old_selection(report),
        .filter = &report->options->filter,
        .costs = ALL_COSTS,
        .sort = is_section ? costs[0] : report_view_cost(report),
        .score = SCORE_LARGER,
        .w = &w,
        .layout = VIEW_ROWS,
        .csv = &csv,
    };
    TRY(choice->write(report, &view));
    return view_end(&view);
}
