// SPDX-License-Identifier: MIT
// diff_text: prints a comparison as text.
//
//                         old         new      change
//    peak heap       57.2 MiB    64.0 MiB   +6.80 MiB   +11.9%
//
//    1.  +6.80 MiB  grown     57.2 MiB ->   64.0 MiB  load()           a function
//        +6.80 MiB  grown, by                                          one of its stacks
//          strdup  [libc.so.6]
//          load    [server]
//
// Before the changes is what became of each finding:
//
//   gone     -438 KiB    438 KiB -> 0 B           growth
//     Was: audit (app.cpp:33) grows until the end, by 97.8 KiB a second ...
//
// The last line is the verdict.
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/minmax.h"
#include "cli/diff/diff_report.h"
#include "cli/text/location_text.h"
#include "cli/text/screen_text.h"
#include "host/text/format.h"
#include "profile/accuracy/sampling.h"
#include "profile/compare/diff_format.h"

enum {
    FRAME_INDENT = 8,
    STACK_INDENT = 6,
    MODULE_COLUMNS = 22,
    ERROR_END = 28, // the column at which the error of a change ends
    UNLIMITED = 1 << 20,
};

static size_t width_of(const struct diff_report *report)
{
    return report->options->use_full_names ? UNLIMITED : report->options->width_columns;
}

static const char *begin_paint(const struct diff_report *report, enum paint paint)
{
    return paint_begin(report->options->use_color, paint);
}

static const char *end_paint(const struct diff_report *report)
{
    return paint_end(report->options->use_color);
}

static struct function_look look_of(const struct diff_report *report)
{
    return (struct function_look){.use_full_names = report->options->use_full_names,
                                  .use_color = report->options->use_color,
                                  .width = width_of(report),
                                  .module_columns = MODULE_COLUMNS};
}

// Print "function  [module]", truncated to the columns of a line after the first `used`.
static void
print_function(const struct diff_report *report, FILE *out, uint32_t function, size_t used)
{
    const struct function_look look = look_of(report);
    function_print(out, &report->comparison->code, function, "", used, &look);
}

static void print_recording(const struct diff_report *report, FILE *out, enum side side)
{
    const struct profile *profile = report->comparison->profiles[side];
    const struct rec_meta *meta = &profile->recording.meta;
    CLEANUP(strbuf_release) struct strbuf text = {0};
    CLEANUP(strbuf_release) struct strbuf cut = {0};
    rec_string what = meta->command_line != 0 ? meta->command_line : meta->program;
    screen_append(&text, what != 0 ? profile_string(profile, what) : "(unknown program)");
    (void)fprintf(out, "%s%s%s ", begin_paint(report, PAINT_TITLE),
                  side == SIDE_NEW ? "new" : "old", end_paint(report));
    bool has_time = (meta->unknown & REC_UNKNOWN_TIME) == 0;
    struct human time =
        has_time ? format_duration(meta->runtime_ms * NS_PER_MS) : (struct human){"unknown time"};
    CLEANUP(strbuf_release) struct strbuf mark = {0};
    sampling_append_mark(&profile->recording, &mark);
    screen_append_cut(&cut, strbuf_text(&text),
                      width_of(report) - 4 - 6 - strlen(time.text) - mark.len, SCREEN_CUT_MIDDLE);
    (void)fprintf(out, "%s, for %s%s\n", strbuf_text(&cut), time.text, strbuf_text(&mark));
}

// Say by how much the peaks may be higher in the allocator, if that is worth a line.
static void print_flights(const struct diff_report *report, FILE *out)
{
    uint64_t flights[SIDE_COUNT];
    bool is_shown = false;
    for (size_t side = 0; side < SIDE_COUNT; side++) {
        const struct summary *summary = &report->comparison->diff.summaries[side];
        flights[side] = summary_peak_flight_bytes(summary);
        is_shown = is_shown || summary_peak_has_share(summary, flights[side]);
    }
    if (is_shown) {
        CLEANUP(strbuf_release) struct strbuf line = {0};
        strbuf_printf(&line, "In the allocator the peaks may be up to %s (old) and ",
                      format_bytes(flights[SIDE_OLD]).text);
        strbuf_printf(&line, "%s (new) higher: each thread may have one block more there.",
                      format_bytes(flights[SIDE_NEW]).text);
        screen_print_wrapped(out, strbuf_text(&line), 2, width_of(report));
    }
}

// Whether what is not freed is leaked. In a part of a run it is only live.
static bool have_ended_on(const struct diff_report *report, enum side side)
{
    return !report->comparison->has_one_profile &&
           profile_has_ended(report->comparison->profiles[side]);
}

// Whether the unfreed memory of both recordings is leaked. Otherwise that of one is live.
static bool have_ended(const struct diff_report *report)
{
    return have_ended_on(report, SIDE_NEW) && have_ended_on(report, SIDE_OLD);
}

static void print_totals(const struct diff_report *report, FILE *out)
{
    static const struct {
        enum cost cost;
        const char *name;
    } lines[] = {{COST_PEAK_BYTES, "peak heap"},
                 {COST_ALLOCATIONS, "allocations"},
                 {COST_ALLOCATED_BYTES, "allocated"},
                 {COST_TEMPORARY, "temporary"},
                 {COST_LEAKED_BYTES, "leaked"}};
    const struct diff *diff = &report->comparison->diff;
    (void)fprintf(out, "\n%28s%14s%14s\n", "old", "new", "change");
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        enum cost cost = lines[i].cost;
        struct diff_change change = diff_total_change(diff, cost);
        const bool is_live = cost == COST_LEAKED_BYTES && !have_ended(report);
        (void)fprintf(out, "  %-12s%14s%14s%s%14s%s  %s%s\n", is_live ? "live" : lines[i].name,
                      diff_format(cost, change.old).text, diff_format(cost, change.new).text,
                      begin_paint(report, PAINT_COST), diff_format_change(cost, change.change).text,
                      end_paint(report), diff_format_ratio(change).text,
                      diff_format_error(cost, change.change_error).text);
    }
    if (diff_has_errors(diff)) {
        (void)fputs("  In about 95 of 100 cases a change is within its ±.\n", out);
    }
    if (report->options->per.is_set) {
        CLEANUP(strbuf_release) struct strbuf unit = {0};
        per_append(&report->options->per, &unit);
        (void)fprintf(out, "  All costs except peaks are divided by %s.\n", strbuf_text(&unit));
    }
    print_flights(report, out);
}

static void print_renames(const struct diff_report *report, FILE *out)
{
    const struct code_union *code = &report->comparison->code;
    const size_t shown = limited_u64(code->renames.len, report->options->site_limit);
    if (shown > 0) {
        (void)fprintf(out, "\n%sRENAMED: the same figures below the same callers%s\n",
                      begin_paint(report, PAINT_TITLE), end_paint(report));
    }
    for (size_t i = 0; i < shown; i++) {
        CLEANUP(strbuf_release) struct strbuf line = {0};
        const char *old = code_union_name(code, code->renames.items[i].from);
        strbuf_append_text(&line, "     ");
        screen_append_function(&line, old, width_of(report) / 2);
        strbuf_append_text(&line, " -> ");
        (void)fputs(strbuf_text(&line), out);
        print_function(report, out, code->renames.items[i].to, screen_columns(strbuf_text(&line)));
    }
    if (code->renames.len > shown) {
        (void)fprintf(out, "     and %s more\n", format_count(code->renames.len - shown).text);
    }
}

static void print_filter(const struct diff_report *report, FILE *out)
{
    const struct comparison *comparison = report->comparison;
    for (size_t i = SIDE_COUNT; i > 0; i--) {
        const enum side side = (enum side)(i - 1); // the old one first
        const bool is_shown = side == SIDE_NEW || comparison->has_one_profile;
        if (is_shown && !comparison->selections[side].is_everything) {
            (void)fprintf(out, "\n  %s:\n",
                          !comparison->has_one_profile
                              ? "Only data that matches the filter is compared"
                          : side == SIDE_NEW ? "New"
                                             : "Old");
            filter_print(&comparison->selections[side], &comparison->filters[side].filter,
                         width_of(report), out);
        }
    }
}

// A line of a stack: a frame, or several wrapper frames in a row, with the outermost.
struct stack_line {
    uint32_t node;
    uint32_t inner;       // further wrapper frames that the line stands for
    bool is_outside_main; // nothing but the C library's frames follows
};

static struct stack_line line_at(const struct diff_report *report, uint32_t node)
{
    const struct tree_view *tree = &report->comparison->diff.tree;
    struct stack_line line = {.node = node};
    for (uint32_t parent = tree->nodes.items[node].parent;
         !report->options->shows_wrappers && parent != 0 && tree_view_is_wrapper(tree, line.node) &&
         tree_view_is_wrapper(tree, parent);
         parent = tree->nodes.items[parent].parent) {
        line.node = parent;
        line.inner++;
    }
    const char *name = code_union_name(&report->comparison->code, tree->functions.items[line.node]);
    line.is_outside_main = tree->nodes.items[line.node].parent == 0 &&
                           function_is_outside_main(name) && !report->options->use_full_names;
    return line;
}

static void print_frames(const struct diff_report *report, FILE *out, uint32_t node)
{
    const struct tree_view *tree = &report->comparison->diff.tree;
    uint32_t limit = report->options->depth_limit;
    for (uint32_t at = node, shown = 0; at != 0; at = tree->nodes.items[at].parent, shown++) {
        const struct stack_line line = line_at(report, at);
        if (line.is_outside_main && shown > 0) {
            return;
        }
        if (limit != 0 && shown == limit) {
            (void)fprintf(out, "%*s... %s more\n", FRAME_INDENT, "",
                          format_count(tree->nodes.items[at].depth).text);
            return;
        }
        char others[96] = "";
        if (line.inner > 0) {
            (void)snprintf(others, sizeof(others), " (+ %s)", // fits
                           format_things(line.inner, "frame", "frames").text);
        }
        const struct function_look look = look_of(report);
        (void)fprintf(out, "%*s", FRAME_INDENT, "");
        function_print(out, &report->comparison->code, tree->functions.items[line.node], others,
                       FRAME_INDENT, &look);
        at = line.node;
    }
}

static MUST_USE enum err
print_stacks(const struct diff_report *report, FILE *out, uint32_t entry, enum cost cost)
{
    const struct diff *diff = &report->comparison->diff;
    CLEANUP(u32_vec_release) struct u32_vec stacks = {0};
    TRY(diff_ranked_stacks(diff, entry, cost, &stacks));
    const size_t shown = limited_u64(stacks.len, report->options->stack_limit);
    for (size_t i = 0; i < shown; i++) {
        struct diff_change change = diff_stack_change(diff, stacks.items[i], cost);
        if (stacks.len > 1) {
            (void)fprintf(out, "%*s%s%s%s%s, %s, by\n", STACK_INDENT, "",
                          begin_paint(report, PAINT_COST),
                          diff_format_change(cost, change.change).text,
                          diff_format_error(cost, change.change_error).text, end_paint(report),
                          diff_class_name(change.class));
        }
        print_frames(report, out, stacks.items[i]);
    }
    if (stacks.len > shown) {
        (void)fprintf(out, "%*s%s changed\n", STACK_INDENT, "",
                      format_things(stacks.len - shown, "more stack", "more stacks").text);
    }
    return ERR_OK;
}

static MUST_USE enum err print_entry(
    const struct diff_report *report, FILE *out, uint32_t entry, enum cost cost, size_t rank)
{
    const struct diff *diff = &report->comparison->diff;
    struct diff_change change = diff_entry_change(diff, entry, cost);
    CLEANUP(strbuf_release) struct strbuf head = {0};
    strbuf_printf(&head, "%3zu. %11s", rank, diff_format_change(cost, change.change).text);
    if (diff_has_errors(diff)) {
        strbuf_append_text(&head, diff_format_error(cost, change.change_error).text);
        const size_t columns = screen_columns(strbuf_text(&head));
        strbuf_printf(&head, "%*s", (int)excess_u64(ERROR_END, columns), "");
    }
    strbuf_printf(&head, "  %-6s %10s -> %10s", diff_class_name(change.class),
                  diff_format(cost, change.old).text, diff_format(cost, change.new).text);
    (void)fprintf(out, "\n%s%s%s  ", begin_paint(report, PAINT_COST), strbuf_text(&head),
                  end_paint(report));
    print_function(report, out, diff->entries.items[entry].function,
                   screen_columns(strbuf_text(&head)) + 2);
    return print_stacks(report, out, entry, cost);
}

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

static void
print_sentence(const struct diff_report *report, const struct finding_change *change, FILE *out)
{
    const enum side side = finding_change_side(change);
    CLEANUP(strbuf_release) struct strbuf safe = {0};
    CLEANUP(strbuf_release) struct strbuf cut = {0};
    strbuf_append_text(&safe, side == SIDE_OLD ? "Was: " : "");
    screen_append(&safe, findings_sentence(&report->changes.findings[side], change->of[side]));
    screen_append_cut(&cut, strbuf_text(&safe), FINDING_BYTES_MAX, SCREEN_CUT_MIDDLE);
    screen_print_wrapped(out, strbuf_text(&cut), FINDING_INDENT, report->options->width_columns);
}

static void
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
    (void)fprintf(out, "  %s%-7s%s %s  %s%s%s\n", paint_begin(use_color, paint),
                  diff_class_name(change->class), paint_end(use_color), strbuf_text(&figures),
                  paint_begin(use_color, PAINT_COST), finding_kind_name(finding->kind),
                  paint_end(use_color));
    print_sentence(report, change, out);
}

// Print what became of each finding, under a title.
static void print_finding_changes(const struct diff_report *report, FILE *out)
{
    const struct finding_change_vec *changes = &report->changes.items;
    const bool use_color = report->options->use_color;
    if (changes->len > 0) {
        (void)fprintf(out, "\n%sFINDINGS, the largest change first%s\n",
                      paint_begin(use_color, PAINT_TITLE), paint_end(use_color));
    }
    for (size_t i = 0; i < changes->len; i++) {
        print_change(report, &changes->items[i], out);
    }
}

enum err diff_print_section(const struct diff_report *report, FILE *out, enum cost cost)
{
    const struct diff *diff = &report->comparison->diff;
    CLEANUP(u32_vec_release) struct u32_vec ids = {0};
    TRY(diff_ranked(diff, cost, &ids));
    const struct profile *live =
        report->comparison->profiles[have_ended_on(report, SIDE_NEW) ? SIDE_OLD : SIDE_NEW];
    const bool is_live = cost == COST_LEAKED_BYTES && report->comparison->has_one_profile;
    (void)fprintf(out, "\n%sCHANGED: %s%s\n", begin_paint(report, PAINT_TITLE),
                  is_live ? "live bytes" : profile_cost_info(live, cost).phrase, end_paint(report));
    if (ids.len == 0) {
        (void)fprintf(out, "     %s\n",
                      diff_knows(diff, cost) ? "nothing" : "not in both recordings");
    }
    const size_t shown = limited_u64(ids.len, report->options->site_limit);
    for (size_t i = 0; i < shown; i++) {
        TRY(print_entry(report, out, ids.items[i], cost, i + 1));
    }
    if (ids.len > shown) {
        (void)fprintf(out, "\n     %s changed\n",
                      format_things(ids.len - shown, "more function", "more functions").text);
    }
    return ERR_OK;
}

static void print_verdict(const struct diff_report *report, FILE *out)
{
    CLEANUP(strbuf_release) struct strbuf verdict = {0};
    CLEANUP(strbuf_release) struct strbuf line = {0};
    const bool is_good = !diff_has_grown(&report->findings);
    diff_verdict_append(&report->comparison->diff,
                        &(struct diff_verdict){.findings = &report->findings,
                                               .costs = report->costs,
                                               .cost_count = report->cost_count,
                                               .threshold = report->options->threshold},
                        &verdict);
    strbuf_append_text(&line, "VERDICT: ");
    screen_append(&line, strbuf_text(&verdict));
    (void)fprintf(out, "\n%s", begin_paint(report, is_good ? PAINT_GOOD : PAINT_WARNING));
    screen_print_wrapped(out, strbuf_text(&line), 0, width_of(report));
    (void)fputs(end_paint(report), out);
}

enum err diff_report_write_text(const struct diff_report *report, FILE *out)
{
    print_recording(report, out, SIDE_OLD);
    print_recording(report, out, SIDE_NEW);
    print_finding_changes(report, out);
    print_totals(report, out);
    print_filter(report, out);
    print_renames(report, out);
    for (size_t i = 0; i < report->cost_count; i++) {
        TRY(diff_print_section(report, out, report->costs[i]));
    }
    print_verdict(report, out);
    return ERR_OK;
}
