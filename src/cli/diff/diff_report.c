// SPDX-License-Identifier: MIT
// diff_report: chooses the costs, makes the verdict, and writes the comparison as JSON
// (docs/format/json.md) or its changes as CSV. See diff_report.h.
#include "cli/diff/diff_report.h"

#include <unistd.h>

#include "base/compiler.h"
#include "cli/options/command.h"
#include "host/text/json_writer.h"
#include "views_json/layout/view_csv.h"
#include "views_json/views/view_parts.h"
#include "views_json/views/views.h"

enum {
    SITES_BY_DEFAULT = 10,
    STACKS_IN_TEXT = 1,
};

struct diff_options diff_options_of(const struct output_words *output, enum cost sort)
{
    return (struct diff_options){
        .sort = sort,
        .site_limit = output_site_limit(output, SITES_BY_DEFAULT),
        .stack_limit = output_stack_limit(output, STACKS_IN_TEXT),
        .depth_limit = output->depth_limit,
        .threshold = DIFF_THRESHOLD_USUAL,
        .use_full_names = output->use_full_names,
        .use_color = !output->no_color && command_use_color(STDOUT_FILENO),
        .width_columns = output_width(output),
    };
}

// Of two moments only what is live then is compared: all other costs add up in between.
static void choose_costs(struct diff_report *report)
{
    static const enum cost live = COST_LEAKED_BYTES;
    const struct diff_options *options = report->options;
    if (options->sort != COST_COUNT) {
        report->costs = &options->sort;
        report->cost_count = 1;
    } else if (between_is_of_moments(&options->between)) {
        report->costs = &live;
        report->cost_count = 1;
    } else {
        report->costs = diff_judged_costs;
        report->cost_count = DIFF_JUDGED_COSTS;
    }
}

enum err diff_report_build(const struct comparison *comparison,
                           const struct diff_options *options,
                           struct diff_report *out,
                           struct err_info *info)
{
    CLEANUP(diff_report_release)
    struct diff_report report = {.comparison = comparison, .options = options};
    if (options->sort != COST_COUNT && !diff_knows(&comparison->diff, options->sort)) {
        return err_set(info, ERR_UNSUPPORTED, "--sort %s: one of the recordings has no %s",
                       cost_get_info(options->sort)->option, cost_get_info(options->sort)->phrase);
    }
    choose_costs(&report);
    double threshold = (double)options->threshold / DIFF_THRESHOLD_UNIT;
    TRY(finding_changes_build(&comparison->diff, &comparison->selections[SIDE_NEW],
                              &comparison->selections[SIDE_OLD], threshold, &report.changes));
    TRY(diff_judge(&comparison->diff, report.costs, report.cost_count, threshold,
                   &report.findings));
    *out = TAKE(report);
    return ERR_OK;
}

void diff_report_release(struct diff_report *report)
{
    diff_finding_vec_release(&report->findings);
    finding_changes_release(&report->changes);
}

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
    view_suppressions(&view);
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

static MUST_USE enum err
write_json(const struct diff_report *report, enum json_style style, FILE *out)
{
    struct json_writer w;
    json_to_stream(&w, out, style);
    json_key_u64(&w, "version", VIEW_JSON_VERSION);
    TRY(write_side(report, SIDE_OLD, &w));
    TRY(write_side(report, SIDE_NEW, &w));
    TRY(write_changes(report, &w, NULL));
    return json_finish(&w);
}

static MUST_USE enum err write_csv(const struct diff_report *report, FILE *out)
{
    struct json_writer w;
    struct view_csv csv = {.out = out, .keys = {"changes"}, .tags = {{.name = "cost"}}};
    view_csv_drop(&w);
    return write_changes(report, &w, &csv);
}

enum err diff_report_print(const struct diff_report *report, const struct output_words *output)
{
    const enum err problem = output->use_csv    ? write_csv(report, stdout)
                             : output->use_json ? write_json(report, command_json_style(), stdout)
                                                : diff_report_write_text(report, stdout);
    // command_finish_output has a sentence for a stream that cannot be written to.
    return problem == ERR_NO_MEMORY ? problem : ERR_OK;
}
