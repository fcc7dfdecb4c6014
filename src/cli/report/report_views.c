// SPDX-License-Identifier: MIT
// report_views: what the optional views of a report share. See report_views.h.
#include "cli/report/report_views.h"

#include "base/compiler.h"
#include "base/minmax.h"
#include "cli/diff/comparison.h"
#include "cli/report/report_lines.h"
#include "cli/text/location_text.h"
#include "cli/text/screen_text.h"
#include "host/text/format.h"
#include "profile/accuracy/sampling.h"
#include "profile/compare/diff_format.h"

enum {
    CHANGE_ERROR_COLUMNS = 12, // " ±1,023 KiB"
};

void report_view_title(const struct report *report, FILE *out, const char *title)
{
    report_print_title(report, out, title);
    (void)fputc('\n', out); // output errors are found when the stream is closed
}

// Return whether both recordings of a comparison know the cost.
static bool knows_cost(const struct report *report, enum cost cost)
{
    const struct selection *old = report_old_selection(report);
    return selection_knows(&report->selection, cost) && (old == NULL || selection_knows(old, cost));
}

enum cost report_view_cost(const struct report *report)
{
    static const enum cost usual[] = {COST_PEAK_BYTES, COST_LEAKED_BYTES, COST_ALLOCATED_BYTES};
    const enum cost sort = report->options->sort;
    for (size_t i = 0; i < ARRAY_LEN(usual) && sort == COST_COUNT; i++) {
        const bool is_any = costs_get(&report->summary.costs, usual[i]) > 0;
        if (is_any && knows_cost(report, usual[i])) {
            return usual[i];
        }
    }
    return sort != COST_COUNT ? sort : COST_PEAK_BYTES;
}

enum call_tree_frames report_view_frames(const struct report *report)
{
    return report->options->shows_wrappers ? CALL_TREE_ALL : CALL_TREE_SITES;
}

size_t report_view_limit(const struct report *report, size_t by_default)
{
    return report->options->has_limit ? report->options->site_limit : by_default;
}

const struct selection *report_old_selection(const struct report *report)
{
    const struct comparison *comparison = report->options->comparison;
    return comparison != NULL ? &comparison->selections[SIDE_OLD] : NULL;
}

static double error_of(const struct recording *recording, const struct costs *costs, enum cost cost)
{
    const struct sampling sampling = sampling_of(recording);
    const struct costs errors = sampling_errors(&sampling, costs);
    return (double)costs_get(&errors, cost);
}

static bool has_change_errors(const struct report *report)
{
    return report->options->comparison != NULL &&
           diff_has_errors(&report->options->comparison->diff);
}

// Append the change and its error.
static void append_change(const struct report *report,
                          struct strbuf *out,
                          const struct costs *new,
                          const struct costs *old)
{
    const struct comparison *comparison = report->options->comparison;
    const enum cost cost = report_view_cost(report);
    const double change = (double)costs_get(new, cost) - (double)costs_get(old, cost);
    strbuf_printf(out, "%11s", diff_format_change(cost, change).text);
    if (has_change_errors(report)) {
        const double error =
            sampling_change_error(error_of(&comparison->profiles[SIDE_NEW]->recording, new, cost),
                                  error_of(&comparison->profiles[SIDE_OLD]->recording, old, cost));
        const size_t end = screen_columns(strbuf_text(out)) + CHANGE_ERROR_COLUMNS;
        strbuf_append_text(out, diff_format_error(cost, error).text);
        strbuf_printf(out, "%*s", (int)excess_u64(end, screen_columns(strbuf_text(out))), "");
    }
}

void report_print_sides(const struct report *report,
                        FILE *out,
                        const struct costs *new,
                        const struct costs *old,
                        uint64_t whole)
{
    static const struct costs none = {0};
    const enum cost cost = report_view_cost(report);
    CLEANUP(strbuf_release) struct strbuf text = {0};
    new = new != NULL ? new : &none;
    old = old != NULL ? old : &none;
    const uint64_t value = costs_get(new, cost);
    if (report->options->comparison != NULL) {
        append_change(report, &text, new, old);
        strbuf_printf(&text, " %10s", report_format_cost(cost, value).text);
    } else {
        strbuf_printf(&text, "%10s", report_format_cost(cost, value).text);
        (void)report_append_error(report, &text, cost, new);
        strbuf_printf(&text, " %6s", format_percent(value, whole).text);
    }
    (void)fprintf(out, "%s%s%s  ", report_paint(report, PAINT_COST), strbuf_text(&text),
                  report_unpaint(report));
}

size_t report_sides_columns(const struct report *report)
{
    if (report->options->comparison != NULL) {
        return 11 + 1 + 10 + 2 + (has_change_errors(report) ? CHANGE_ERROR_COLUMNS : 0);
    }
    return 10 + 1 + 6 + 2 +
           (sampling_has_errors(&report->profile->recording) ? REPORT_ERROR_COLUMNS : 0);
}

void report_print_function(
    const struct report *report, FILE *out, uint32_t function, uint32_t inner, size_t used)
{
    enum {
        MODULE_COLUMNS = 20
    };
    const struct function_look look = {.use_full_names = report->options->use_full_names,
                                       .use_color = report->options->use_color,
                                       .width = report_width(report),
                                       .module_columns = MODULE_COLUMNS};
    char others[96] = "";
    if (inner > 0) {
        (void)snprintf(others, sizeof(others), " (+ %s)",
                       format_things(inner, "frame", "frames").text); // fits
    }
    function_print(out, report->code, function, others, used, &look);
}
