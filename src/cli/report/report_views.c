// SPDX-License-Identifier: MIT
// report_views: what the optional views of a report share. See report_views.h.
#include "cli/report/report_views.h"

#include "base/compiler.h"
#include "cli/diff/comparison.h"
#include "cli/diff/diff_report.h"
#include "cli/report/report_lines.h"
#include "cli/text/screen_text.h"
#include "host/os/file.h"
#include "profile/compare/diff_format.h"

void report_view_title(const struct report *report, FILE *out, const char *title)
{
    report_print_title(report, out, title);
    (void)fputc('\n', out); // output errors are found when the stream is closed
}

enum cost report_view_cost(const struct report *report)
{
    return report->options->sort != COST_COUNT ? report->options->sort : COST_PEAK_BYTES;
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

void report_print_sides(
    const struct report *report, FILE *out, uint64_t new, uint64_t old, uint64_t whole)
{
    enum cost cost = report_view_cost(report);
    (void)fputs(report_paint(report, PAINT_COST), out);
    if (report->options->comparison != NULL) {
        double change = (double)new - (double)old;
        (void)fprintf(out, "%11s %10s", diff_format_change(cost, change).text,
                      report_format_cost(cost, new).text);
    } else {
        (void)fprintf(out, "%10s %6s", report_format_cost(cost, new).text,
                      format_percent(new, whole).text);
    }
    (void)fprintf(out, "%s  ", report_unpaint(report));
}

void report_print_function(
    const struct report *report, FILE *out, uint32_t function, uint32_t inner, size_t used)
{
    enum {
        MODULE_COLUMNS = 20
    };
    CLEANUP(strbuf_release) struct strbuf module = {0};
    CLEANUP(strbuf_release) struct strbuf cut = {0};
    CLEANUP(strbuf_release) struct strbuf name = {0};
    const char *path = code_union_module(report->code, function);
    screen_append(&module, report->options->use_full_names ? path : path_file_name(path));
    screen_append_cut(&cut, strbuf_text(&module),
                      report->options->use_full_names ? REPORT_WIDTH_UNLIMITED : MODULE_COLUMNS,
                      SCREEN_CUT_START);
    size_t width = report_width(report);
    char others[40] = "";
    if (inner > 0) {
        used += (size_t)snprintf(others, sizeof(others), " (+ %u frame%s)", inner,
                                 inner == 1 ? "" : "s"); // fits
    }
    size_t taken = used + (cut.len > 0 ? 4 + screen_columns(strbuf_text(&cut)) : 0);
    const char *text = code_union_name(report->code, function);
    if (text[0] == '\0') {
        strbuf_append_text(&name, "(code without a name)");
    } else if (report->options->use_full_names) {
        screen_append(&name, text);
    } else {
        screen_append_function(&name, text, width > taken ? width - taken : 0);
    }
    (void)fprintf(out, "%s%s%s%s", report_paint(report, PAINT_FUNCTION), strbuf_text(&name),
                  report_unpaint(report), others);
    if (cut.len > 0) {
        (void)fprintf(out, "  %s[%s]%s", report_paint(report, PAINT_PLACE), strbuf_text(&cut),
                      report_unpaint(report));
    }
    (void)fputc('\n', out);
}
