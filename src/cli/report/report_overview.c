// SPDX-License-Identifier: MIT
// report_overview: the text report around its sections: the run, the totals, the filter, the
// processes, and the modules without names. See report_lines.h.
#include <inttypes.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "base/compiler.h"
#include "base/minmax.h"
#include "base/order.h"
#include "cli/options/filter_options.h"
#include "cli/report/report_lines.h"
#include "cli/text/screen_text.h"
#include "host/text/format.h"
#include "profile/accuracy/coverage.h"
#include "profile/accuracy/sampling.h"

enum {
    PROCESS_LINES = 12,
    LEFT_INDENT = 27, // below the figures of the totals
    WRAPPED_INDENT = 4,
    MARK_LINES = 40,
    MARK_COLUMNS = 14, // before a mark's text
};

// Append how the program ended, as a phrase; nothing while it runs.
static void append_ending(struct strbuf *out, int32_t wait_status)
{
    if (wait_status < 0) {
        return;
    }
    if (WIFSIGNALED(wait_status)) {
        const char *name = sigabbrev_np(WTERMSIG(wait_status));
        strbuf_printf(out, ", killed by SIG%s", name != NULL ? name : "?");
    } else {
        strbuf_printf(out, ", exit status %d", WEXITSTATUS(wait_status));
    }
}

// Append "2026-11-20 14:13:20 +0100, on buildbox, for 5.68 s, exit status 0".
static void append_circumstances(const struct report *report, struct strbuf *out)
{
    const struct rec_meta *meta = &report->profile->recording.meta;
    CLEANUP(strbuf_release) struct strbuf text = {0};
    time_t seconds = (time_t)(meta->start_unix_ns / 1000000000);
    struct tm local;
    char when[32];
    if (seconds != 0 && localtime_r(&seconds, &local) != NULL &&
        strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S %z", &local) > 0) {
        strbuf_printf(out, "%s, ", when);
    }
    if (meta->host != 0) {
        strbuf_printf(out, "on %s, ", report_string(report, &text, meta->host));
    }
    bool is_timed = (meta->unknown & REC_UNKNOWN_TIME) == 0;
    strbuf_printf(out, "for %s",
                  is_timed ? screen_format_ms(meta->runtime_ms).text : "unknown time");
    append_ending(out, meta->exit_status);
}

void report_print_header(const struct report *report, FILE *out)
{
    const struct rec_meta *meta = &report->profile->recording.meta;
    CLEANUP(strbuf_release) struct strbuf text = {0};
    CLEANUP(strbuf_release) struct strbuf line = {0};
    rec_string what = meta->command_line != 0 ? meta->command_line : meta->program;
    const char *title = what != 0 ? report_string(report, &text, what) : "(unknown program)";
    screen_append_cut(&line, title, report_width(report), SCREEN_CUT_MIDDLE);
    (void)fprintf(out, "%s%s%s\n", report_paint(report, PAINT_TITLE), strbuf_text(&line),
                  report_unpaint(report));

    strbuf_clear(&line);
    strbuf_clear(&text);
    append_circumstances(report, &line);
    screen_append_cut(&text, strbuf_text(&line), report_width(report) - 2, SCREEN_CUT_MIDDLE);
    (void)fprintf(out, "  %s\n  ", strbuf_text(&text));
    report_print_counted(out, report->summary.processes, "process", "processes", ", ");
    report_print_counted(out, report->summary.threads, "thread", "threads", ", ");
    report_print_counted(out, report->summary.stacks, "call stack", "call stacks", "\n\n");
}

static void
print_total(const struct report *report, FILE *out, const char *name, struct human value)
{
    (void)fprintf(out, "  %-12s %s%10s%s", name, report_paint(report, PAINT_COST), value.text,
                  report_unpaint(report));
}

static void
print_bytes_total(const struct report *report, FILE *out, const char *name, uint64_t bytes)
{
    print_total(report, out, name, format_bytes(bytes));
    (void)fprintf(out, "  %s", format_things(bytes, "byte", "bytes").text);
}

// Print the error of a total, unless it is exact.
static void print_error(const struct report *report, FILE *out, enum cost cost)
{
    const struct sampling sampling = sampling_of(&report->profile->recording);
    const struct costs *totals = &report->summary.costs;
    const struct costs errors = sampling_errors(&sampling, totals);
    (void)fputs(sampling_format_error(costs_get(totals, cost), costs_get(&errors, cost)).text, out);
}

// Print how much may be missing where no recorded block has leaked.
static void print_unseen_leaks(const struct report *report, FILE *out)
{
    const struct sampling sampling = sampling_of(&report->profile->recording);
    if (sampling.bytes != 0 && costs_get(&report->summary.costs, COST_LEAKED_BYTES) == 0) {
        (void)fprintf(out, "; up to %s may be missing",
                      format_bytes(sampling_most_unseen(&sampling)).text);
    }
}

// Print a line in place of an unknown figure. Return whether the figure is unknown.
static bool print_unknown(const struct report *report, FILE *out, const char *name, enum cost cost)
{
    bool is_known = selection_knows(&report->selection, cost);
    if (!is_known) {
        (void)fprintf(out, "  %-12s %10s\n", name, "unknown");
    }
    return !is_known;
}

// Append the bounds of the peak, on the first screen only wide ones, and its time: ", at least 90,
// at most 110 after 5.00 ms".
static void append_bounds(const struct report *report, struct strbuf *out)
{
    const struct summary *summary = &report->summary;
    const bool is_wide = !report_is_screen(report->options) ||
                         summary_has_wide_peak(summary, summary_peak_at_least(summary),
                                               summary_peak_at_most(summary));
    if (is_wide && summary->peak_below_bytes > 0) {
        strbuf_printf(out, ", at least %s", format_count(summary_peak_at_least(summary)).text);
    }
    if (is_wide && summary->peak_error_bytes > 0) {
        strbuf_printf(out, ", at most %s", format_count(summary_peak_at_most(summary)).text);
    }
    if ((report->profile->recording.meta.unknown & REC_UNKNOWN_TIME) == 0) {
        strbuf_printf(out, " after %s", screen_format_ms(summary->peak_time_ms).text);
    }
}

// The bounds are in a line of their own if the line would be too long with them.
static void print_peak_total(const struct report *report, FILE *out)
{
    const uint64_t bytes = report->summary.costs.values[COST_PEAK_BYTES];
    CLEANUP(strbuf_release) struct strbuf bounds = {0};
    if (print_unknown(report, out, "peak heap", COST_PEAK_BYTES)) {
        return;
    }
    print_bytes_total(report, out, "peak heap", bytes);
    append_bounds(report, &bounds);
    const char *text = strbuf_text(&bounds);
    const size_t columns =
        LEFT_INDENT + strlen(format_things(bytes, "byte", "bytes").text) + bounds.len;
    if (text[0] == ',' && columns > report_width(report)) {
        (void)fprintf(out, ",\n%*s%s\n", LEFT_INDENT, "", text + strlen(", "));
    } else {
        (void)fprintf(out, "%s\n", text);
    }
}

static void print_allocation_totals(const struct report *report, FILE *out)
{
    const struct summary *summary = &report->summary;
    const uint64_t *values = summary->costs.values;
    if (!print_unknown(report, out, "allocations", COST_ALLOCATIONS)) {
        print_total(report, out, "allocations", format_count(values[COST_ALLOCATIONS]));
        print_error(report, out, COST_ALLOCATIONS);
        if (summary->counted_ms > 0) {
            (void)fprintf(out, "  %s a second", format_rate(summary->allocations_per_s).text);
        }
        (void)fprintf(out, "\n");
    }
    if (!print_unknown(report, out, "allocated", COST_ALLOCATED_BYTES)) {
        print_bytes_total(report, out, "allocated", values[COST_ALLOCATED_BYTES]);
        print_error(report, out, COST_ALLOCATED_BYTES);
        (void)fprintf(out, "\n");
    }
    if (!print_unknown(report, out, "temporary", COST_TEMPORARY)) {
        print_total(report, out, "temporary", format_count(values[COST_TEMPORARY]));
        print_error(report, out, COST_TEMPORARY);
        (void)fprintf(out, "  %s of all allocations\n",
                      format_percent(values[COST_TEMPORARY], values[COST_ALLOCATIONS]).text);
    }
}

// Print how many of the figures below are estimates, or how few are exact.
static void print_sampling(const struct report *report, FILE *out)
{
    const struct sampling sampling = sampling_of(&report->profile->recording);
    if (sampling.is_sampled) {
        CLEANUP(strbuf_release) struct strbuf line = {0};
        strbuf_printf(&line, "Estimates: %s allocations was recorded. Exactly ",
                      sampling_format_rate(&sampling).text);
        strbuf_printf(&line, "%s of ",
                      format_things(sampling.allocations, "allocation", "allocations").text);
        strbuf_printf(&line, "%s %s made.",
                      format_things(sampling.allocated_bytes, "byte", "bytes").text,
                      sampling.allocations == 1 ? "was" : "were");
        if (sampling.bytes != 0) {
            strbuf_append_char(&line, ' ');
            sampling_append_error(&sampling, &line);
            strbuf_append_char(&line, '.');
        }
        screen_print_wrapped(out, strbuf_text(&line), 2, report_width(report));
    }
}

void report_print_totals(const struct report *report, FILE *out)
{
    print_sampling(report, out);
    const struct summary *summary = &report->summary;
    const uint64_t *values = summary->costs.values;
    print_peak_total(report, out);
    print_allocation_totals(report, out);
    const char *unfreed = profile_has_ended(report->profile) ? "leaked" : "live";
    if (!print_unknown(report, out, unfreed, COST_LEAKED_BYTES)) {
        print_bytes_total(report, out, unfreed, values[COST_LEAKED_BYTES]);
        print_error(report, out, COST_LEAKED_BYTES);
        if (selection_knows(&report->selection, COST_LEAKED_ALLOCATIONS)) {
            (void)fprintf(out, " in ");
            report_print_counted(out, values[COST_LEAKED_ALLOCATIONS], "block", "blocks", "");
            print_error(report, out, COST_LEAKED_ALLOCATIONS);
        }
        print_unseen_leaks(report, out);
        const bool is_more = selection_knows(&report->selection, COST_PEAK_BYTES) &&
                             values[COST_LEAKED_BYTES] > values[COST_PEAK_BYTES];
        if (is_more && summary->processes > 1 && report->selection.is_everything) {
            (void)fprintf(out, ",\n%*sleft by processes one after the other", LEFT_INDENT, "");
        }
        (void)fprintf(out, "\n");
    }
    if (report->selection.suppressed.stack_count > 0) {
        print_bytes_total(report, out, "suppressed", report->selection.suppressed.live_bytes);
        (void)fprintf(out, " in ");
        report_print_counted(out, report->selection.suppressed.live_blocks, "block", "blocks",
                             ", not counted as ");
        (void)fprintf(out, "%s\n", unfreed);
    }
    if (summary->peak_rss_bytes > 0) {
        print_bytes_total(report, out, "peak RSS", summary->peak_rss_bytes);
        if (summary_has_wide_rss(summary)) {
            (void)fprintf(out, ", at most %s", format_bytes(summary->peak_rss_at_most).text);
        }
        (void)fprintf(out, "\n");
    }
}

// Say how much of the recording passes the filter.
static void print_share(const struct report *report, FILE *out)
{
    const struct rec_totals *all = &report->profile->recording.totals;
    const uint64_t *part = report->summary.costs.values;
    if (!selection_knows(&report->selection, COST_ALLOCATIONS)) {
        return;
    }
    (void)fprintf(out, "    %s of ", format_count(part[COST_ALLOCATIONS]).text);
    (void)fprintf(out, "%s %s, ", format_things(all->allocations, "allocation", "allocations").text,
                  part[COST_ALLOCATIONS] == 1 ? "passes" : "pass");
    (void)fprintf(out, "%s of ", format_bytes(part[COST_ALLOCATED_BYTES]).text);
    (void)fprintf(out, "%s\n", format_bytes(all->allocated_bytes).text);
}

void report_print_filter(const struct report *report, FILE *out)
{
    if (!report->selection.is_everything) {
        (void)fprintf(out, "\n  Only data that matches the filter is counted:\n");
        filter_print(&report->selection, &report->options->filter, report_width(report), out);
        print_share(report, out);
    }
}

// A process with all its images.
struct process_line {
    uint32_t image; // its last image, which names it
    uint64_t peak_bytes;
    uint64_t allocations;
};

DEFINE_VEC(process_line_vec, struct process_line);

static void print_process(const struct report *report, FILE *out, const struct process_line *line)
{
    const struct rec_process *process = &report->profile->recording.processes[line->image];
    CLEANUP(strbuf_release) struct strbuf text = {0};
    CLEANUP(strbuf_release) struct strbuf cut = {0};
    rec_string what = process->command_line != 0 ? process->command_line : process->executable;
    const bool has_peak = profile_knows(report->profile, COST_PEAK_BYTES);
    const bool has_allocations = selection_knows(&report->selection, COST_ALLOCATIONS);
    int used = fprintf(out, "  %10s at its peak, %24s  %7" PRIu32 "  ",
                       has_peak ? format_bytes(line->peak_bytes).text : "unknown",
                       has_allocations
                           ? format_things(line->allocations, "allocation ", "allocations").text
                           : "unknown allocations",
                       process->pid);
    size_t room = report_width(report) > (size_t)used ? report_width(report) - (size_t)used : 0;
    screen_append_cut(&cut, report_string(report, &text, what), room, SCREEN_CUT_MIDDLE);
    (void)fprintf(out, "%s\n", strbuf_text(&cut));
}

static int compare_lines(const void *left, const void *right)
{
    const struct process_line *a = left;
    const struct process_line *b = right;
    return order_u64(b->peak_bytes, a->peak_bytes) ?: order_u64(a->image, b->image);
}

// Find the processes that pass the filter, one line each, counted as in the totals.
static MUST_USE enum err find_processes(const struct report *report, struct process_line_vec *out)
{
    const struct recording *recording = &report->profile->recording;
    CLEANUP(group_vec_release) struct group_vec groups = {0};
    CLEANUP(u32_vec_release) struct u32_vec beginnings = {0};
    CLEANUP(u32_vec_release) struct u32_vec lines = {0}; // line + 1 by the index of the first image
    TRY(groups_build(&report->selection, GROUP_BY_PROCESS, &groups));
    TRY(summary_beginnings(recording, &beginnings));
    TRY(u32_vec_resize(&lines, recording->process_count));
    for (size_t i = 0; i < groups.len; i++) {
        const struct group *group = &groups.items[i];
        uint32_t *number = &lines.items[beginnings.items[group->id]];
        if (*number == 0) {
            TRY(process_line_vec_push(out, (struct process_line){0}));
            *number = (uint32_t)out->len;
        }
        struct process_line *line = &out->items[*number - 1];
        const uint64_t peak_bytes = recording->processes[group->id].peak_bytes;
        line->image = group->id;
        line->peak_bytes = max_u64(line->peak_bytes, peak_bytes);
        line->allocations += costs_get(&group->costs, COST_ALLOCATIONS);
    }
    return ERR_OK;
}

enum err report_print_processes(const struct report *report, FILE *out)
{
    CLEANUP(process_line_vec_release) struct process_line_vec lines = {0};
    TRY(find_processes(report, &lines));
    if (lines.len < 2) {
        return ERR_OK;
    }
    process_line_vec_sort(&lines, compare_lines);
    report_print_title(report, out, "PROCESSES");
    size_t shown = min_u64(lines.len, PROCESS_LINES);
    for (size_t i = 0; i < shown; i++) {
        print_process(report, out, &lines.items[i]);
    }
    report_print_rest(out, lines.len, shown, "more process", "more processes");
    return ERR_OK;
}

// Print starts, stops, and the marks of the user and of the program.
void report_print_marks(const struct report *report, FILE *out)
{
    static const char *const phrases[] = {
        [REC_MARK_START] = "recording started", [REC_MARK_STOP] = "recording stopped"};
    const struct recording *recording = &report->profile->recording;
    if (recording->mark_count > 0) {
        (void)fprintf(out, "\n%sMARKS%s\n", report_paint(report, PAINT_TITLE),
                      report_unpaint(report));
    }
    for (size_t i = 0; i < recording->mark_count && i < MARK_LINES; i++) {
        const struct rec_mark *mark = &recording->marks[i];
        CLEANUP(strbuf_release) struct strbuf text = {0};
        CLEANUP(strbuf_release) struct strbuf cut = {0};
        const char *phrase = mark->kind < ARRAY_LEN(phrases) ? phrases[mark->kind] : NULL;
        const char *what = phrase != NULL ? phrase : report_string(report, &text, mark->text);
        screen_append_cut(&cut, what, report_width(report) - MARK_COLUMNS, SCREEN_CUT_MIDDLE);
        (void)fprintf(out, "  %10s  %s\n", screen_format_ms(mark->time_ms).text, strbuf_text(&cut));
    }
    report_print_rest(out, recording->mark_count, MARK_LINES, "more", "more");
}

static bool has_losses(const struct recording *recording)
{
    for (size_t i = 0; i < recording->counter_count; i++) {
        if (recording->counters[i].kind == REC_COUNTER_LOSS && recording->counters[i].value > 0) {
            return true;
        }
    }
    return false;
}

// Print the weaknesses of the recording that lose no event. Warnings name the lost events.
void report_print_notes(const struct report *report, FILE *out)
{
    const struct recording *recording = &report->profile->recording;
    bool is_first = true;
    for (size_t i = 0; i < recording->counter_count; i++) {
        const struct rec_counter *counter = &recording->counters[i];
        if (counter->kind == REC_COUNTER_LOSS || counter->value == 0) {
            continue;
        }
        if (is_first) {
            (void)fprintf(out,
                          "\n%sDATA QUALITY: the totals %s; some stacks may not be complete%s\n",
                          report_paint(report, PAINT_TITLE),
                          has_losses(recording) ? "lack the lost events" : "are complete",
                          report_unpaint(report));
        }
        is_first = false;
        CLEANUP(strbuf_release) struct strbuf text = {0};
        CLEANUP(strbuf_release) struct strbuf line = {0};
        strbuf_printf(&line, "%s: %s", report_string(report, &text, counter->text),
                      format_count(counter->value).text);
        screen_print_wrapped(out, strbuf_text(&line), WRAPPED_INDENT, report_width(report));
    }
}
