// SPDX-License-Identifier: MIT
// diff_json: prints a comparison as JSON (docs/format/json.md), or its changes as CSV.
#include "base/compiler.h"
#include "cli/diff/diff_report.h"
#include "views_json/layout/view_csv.h"
#include "views_json/views/view_parts.h"
#include "views_json/views/views.h"

enum {
    HUNDREDTHS_OF_ALL = 10000,
};

// Write one recording: its description and its totals.
static MUST_USE enum err
write_side(const struct diff_report *report, enum side side, struct json_writer *w)
{
    const struct comparison *comparison = report->comparison;
    CLEANUP(view_release)
    struct view view = {
        .profile = comparison->profiles[side],
        .selection = &comparison->selections[side],
        .filter = &comparison->filters[side].filter,
        .w = w,
        .layout = VIEW_ROWS,
    };
    json_key_object(w, side == SIDE_NEW ? "new" : "old");
    view_damage(&view);
    TRY(view_run(&view));
    TRY(view_selection(&view, NULL));
    TRY(view_suppressions(&view));
    view_totals(&view, "totals", &comparison->diff.summaries[side]);
    json_key_double(w, "units", comparison->diff.units[side]);
    TRY(view_end(&view));
    json_end_object(w);
    return ERR_OK;
}

// Write the changes as JSON, or their rows as CSV if `csv` is not NULL.
static MUST_USE enum err
write_changes(const struct diff_report *report, struct json_writer *w, struct view_csv *csv)
{
    CLEANUP(view_release)
    struct view view = {
        .profile = report->comparison->profiles[SIDE_NEW],
        .code = &report->comparison->code,
        .w = w,
        .layout = VIEW_ROWS,
        .csv = csv,
    };
    const struct diff_view_options options = {
        .diff = &report->comparison->diff,
        .findings = &report->findings,
        .finding_changes = &report->changes,
        .costs = report->costs,
        .cost_count = report->cost_count,
        .threshold = (double)report->options->threshold / HUNDREDTHS_OF_ALL,
        .limit = report->options->site_limit,
        .stack_limit = report->options->stack_limit,
    };
    TRY(view_diff(&view, &options));
    return view_end(&view);
}

enum err diff_report_write_json(const struct diff_report *report, enum json_style style, FILE *out)
{
    struct json_writer w;
    json_to_stream(&w, out, style);
    json_key_u64(&w, "version", VIEW_JSON_VERSION);
    TRY(write_side(report, SIDE_OLD, &w));
    TRY(write_side(report, SIDE_NEW, &w));
    TRY(write_changes(report, &w, NULL));
    return json_finish(&w);
}

enum err diff_report_write_csv(const struct diff_report *report, FILE *out)
{
    struct json_writer w;
    struct view_csv csv = {.out = out, .keys = {"changes"}, .tags = {{.name = "cost"}}};
    view_csv_drop(&w);
    return write_changes(report, &w, &csv);
}
