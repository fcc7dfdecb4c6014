// SPDX-License-Identifier: MIT
// report_json: prints the report as JSON: the views of src/views_json in rows, in one document.
//
// docs/format/json.md describes the document and its views.
#include <unistd.h>

#include "base/compiler.h"
#include "cli/report/report.h"
#include "cli/report/report_views.h"
#include "profile/tables/block_table.h"
#include "views_json/views/views.h"

static MUST_USE enum err write_summary(const struct report *report, struct view *view)
{
    enum cost costs[REPORT_COSTS];
    struct summary_options options = {
        .sites = {.sites = &report->sites,
                  .limit = report->options->site_limit,
                  .lists_stacks = true,
                  .stack_limit = report->options->stack_limit},
        .all_costs = true,
    };
    options.cost_count = report_sections(report, costs);
    options.costs = costs;
    return view_summary(view, &options);
}

static void write_null(struct view *view, const char *key)
{
    json_key_null(view->w, key);
}

static MUST_USE enum err write_leaks(const struct report *report, struct view *view)
{
    const struct leaks_options options = {
        .growth = &report->growth, .by = ROW_GROUPS_BY_SITE, .limit = report->options->site_limit};
    if (report->growth.entries.len == 0) {
        write_null(view, "leaks");
        return ERR_OK;
    }
    VIEW_OBJECT(view, "leaks", view_leaks(view, &options));
    return ERR_OK;
}

static MUST_USE enum err write_blocks(const struct report *report, struct view *view)
{
    const struct filter *filter = &report->options->filter;
    const struct blocks_options options = {.lists_blocks = report->options->lists_blocks,
                                           .limit = report->options->site_limit};
    if (!block_table_is_recorded(report->profile) || filter->has_range || filter->has_lifetimes) {
        write_null(view, "blocks");
        return ERR_OK;
    }
    VIEW_OBJECT(view, "blocks", view_blocks(view, &options));
    return ERR_OK;
}

// Write the RSS breakdowns, with the mappings of the highest and of the last one.
static MUST_USE enum err write_rss(const struct report *report, struct view *view)
{
    const struct rss_breakdown *rss_breakdown = &report->rss_breakdown;
    const struct rss_breakdown_split *detailed[] = {rss_breakdown_peak(rss_breakdown),
                                                    rss_breakdown_last(rss_breakdown)};
    CLEANUP(flag_vec_release) struct flag_vec details = {0};
    TRY(flag_vec_resize(&details, rss_breakdown->splits.len));
    for (size_t i = 0; i < ARRAY_LEN(detailed); i++) {
        if (detailed[i] != NULL) {
            details.items[detailed[i] - rss_breakdown->splits.items] = 1;
        }
    }
    VIEW_OBJECT(view, "rss", view_rss(view, rss_breakdown, &details));
    return ERR_OK;
}

// Write the optional views: null for one that was not requested.
static MUST_USE enum err write_views(const struct report *report, struct view *view)
{
    static const struct {
        const char *keys[2];
        uint32_t bit;
        enum err (*write)(const struct report *report, struct view *view);
    } views[] = {
        {{"groups"}, REPORT_GROUPS, report_groups_json},
        {{"functions"}, REPORT_FUNCTIONS, report_functions_json},
        {{"callers"}, REPORT_CALLERS, report_callers_json},
        {{"tree"}, REPORT_TREE, report_tree_json},
        {{"sizes", "lifetimes"}, REPORT_HISTOGRAMS, report_histograms_json},
    };
    for (size_t i = 0; i < ARRAY_LEN(views); i++) {
        if ((report->options->views & views[i].bit) != 0) {
            TRY(views[i].write(report, view));
            continue;
        }
        for (size_t k = 0; k < ARRAY_LEN(views[i].keys) && views[i].keys[k] != NULL; k++) {
            write_null(view, views[i].keys[k]);
        }
    }
    return ERR_OK;
}

static MUST_USE enum err write_document(const struct report *report, struct view *view)
{
    json_key_u64(view->w, "version", VIEW_JSON_VERSION);
    TRY(view_selection(view, NULL));
    TRY(write_summary(report, view));
    view_suppressions(view);
    TRY(write_leaks(report, view));
    VIEW_OBJECT(view, "adhoc", view_adhoc(view, 0));
    TRY(write_blocks(report, view));
    TRY(write_rss(report, view));
    TRY(view_processes(view));
    TRY(view_threads(view));
    TRY(view_modules(view));
    view->old_selection = report_old_selection(report);
    return write_views(report, view);
}

enum err report_write_json(const struct report *report, enum json_style style, FILE *out)
{
    struct json_writer w;
    CLEANUP(view_release)
    struct view view = {
        .profile = report->profile,
        .code = report->code,
        .selection = &report->selection,
        .filter = &report->options->filter,
        .costs = ALL_COSTS,
        .sort = report_view_cost(report),
        .score = SCORE_LARGER,
        .w = &w,
        .layout = VIEW_ROWS,
        .has_offsets = true,
        // None if the report itself goes to the terminal.
        .progress = isatty(STDOUT_FILENO) == 0 ? report->options->progress : NULL,
    };
    json_to_stream(&w, out, style);
    TRY(write_document(report, &view));
    TRY(view_end(&view));
    return json_finish(&w);
}
