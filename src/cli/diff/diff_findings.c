// SPDX-License-Identifier: MIT
// diff_findings: prints what became of each finding, before all other changes.
//
//   gone     -438 KiB    438 KiB -> 0 B           growth
//     Was: audit (app.cpp:33) grows until the end, by 97.8 KiB a second ...
#include <math.h>

#include "base/compiler.h"
#include "cli/diff/diff_report.h"
#include "cli/text/paint.h"
#include "cli/text/screen_text.h"
#include "profile/compare/diff_format.h"

enum {
    FINDING_INDENT = 4,
    FINDING_BYTES_MAX = 600, // names may be megabytes
};

// Append "1.20 MiB -> none": a recording that has no such finding may have no figure.
static void append_figures(const struct diff_change *figure, struct strbuf *out)
{
    const double values[] = {figure->old, figure->new};
    const bool is_unknown = !(figure->old > 0) && !(figure->new > 0);
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        const struct human text = is_unknown         ? (struct human){""}
                                  : isnan(values[i]) ? (struct human){"none"}
                                                     : diff_format(COST_PEAK_BYTES, values[i]);
        strbuf_printf(out, i == 0 ? "%10s" : "%-10s", text.text);
        strbuf_append_text(out, i > 0 ? "" : is_unknown ? "    " : " -> ");
    }
}

static MUST_USE enum err
print_sentence(const struct diff_report *report, const struct finding_change *change, FILE *out)
{
    const enum side side = finding_change_side(change);
    CLEANUP(strbuf_release) struct strbuf safe = {0};
    CLEANUP(strbuf_release) struct strbuf cut = {0};
    strbuf_append_text(&safe, side == SIDE_OLD ? "Was: " : "");
    screen_append(&safe, findings_sentence(&report->changes.findings[side], change->of[side]));
    screen_append_cut(&cut, strbuf_text(&safe), FINDING_BYTES_MAX, SCREEN_CUT_MIDDLE);
    TRY(strbuf_result(&cut));
    screen_print_wrapped(out, strbuf_text(&cut), FINDING_INDENT, report->options->width_columns);
    return ERR_OK;
}

static MUST_USE enum err
print_change(const struct diff_report *report, const struct finding_change *change, FILE *out)
{
    const bool use_color = report->options->use_color;
    const bool is_good = change->class == DIFF_GONE || change->class == DIFF_SHRUNK;
    const bool is_bad = change->class == DIFF_NEW || change->class == DIFF_GROWN;
    const enum paint paint = is_good ? PAINT_GOOD : is_bad ? PAINT_WARNING : PAINT_COST;
    const struct diff_change *figure = &change->change;
    const struct finding *finding = change->of[finding_change_side(change)];
    CLEANUP(strbuf_release) struct strbuf figures = {0};
    const bool has_change = !isnan(figure->change);
    strbuf_printf(&figures, "%11s",
                  has_change ? diff_format_change(COST_PEAK_BYTES, figure->change).text : "");
    strbuf_append_text(
        &figures, diff_format_error(COST_PEAK_BYTES, has_change ? figure->change_error : 0).text);
    strbuf_append_text(&figures, "  ");
    append_figures(figure, &figures);
    TRY(strbuf_result(&figures));
    (void)fprintf(out, "  %s%-7s%s %s  %s%s%s\n", paint_begin(use_color, paint),
                  diff_class_name(change->class), paint_end(use_color), strbuf_text(&figures),
                  paint_begin(use_color, PAINT_COST), finding_kind_name(finding->kind),
                  paint_end(use_color));
    return print_sentence(report, change, out);
}

enum err diff_print_findings(const struct diff_report *report, FILE *out)
{
    const struct finding_change_vec *changes = &report->changes.items;
    const bool use_color = report->options->use_color;
    if (changes->len > 0) {
        (void)fprintf(out, "\n%sFINDINGS, the largest change first%s\n",
                      paint_begin(use_color, PAINT_TITLE), paint_end(use_color));
    }
    for (size_t i = 0; i < changes->len; i++) {
        TRY(print_change(report, &changes->items[i], out));
    }
    return ERR_OK;
}
