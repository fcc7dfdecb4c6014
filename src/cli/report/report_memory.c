// SPDX-License-Identifier: MIT
// report_memory: the text report's section on resident memory. See report_lines.h.
//
//   RESIDENT MEMORY: what RSS consisted of
//                                 at the peak, 0.11 s      at the end, 0.12 s
//     # live heap blocks            34.0 MiB  56.4%          12.0 MiB  40.0%
//     : rounding in blocks        ~ 1.96 MiB   3.2%        ~ 0.50 MiB   2.0%
//     ...
//     peak  ############################::....MMMMMMMMFFF
//     end   ##########:......................MMMMMMMMFFF

#include <string.h>

#include "base/compiler.h"
#include "base/minmax.h"
#include "cli/report/report_lines.h"
#include "cli/report/report_views.h"
#include "cli/text/location_text.h"
#include "cli/text/screen_text.h"
#include "host/os/file.h"
#include "host/text/format.h"
#include "profile/tables/rss_allocators.h"

enum {
    BAR_COLUMNS_MAX = 66,
    BAR_INDENT = 10, // "highest" fits
    PHRASE_COLUMNS = 22,
    SHARE_COLUMNS = 12, // between the amounts of the two moments
    TOP_PARTS = 5,
    PLACE_COLUMNS = 30,
    AMOUNT_COLUMNS = 36, // before the name of a component
    SURVIVOR_COLUMNS = 16,
    ALLOCATOR_COLUMNS = 56, // before the name of an allocator
};

// Return the character that draws a component in the bar.
static char letter_of(uint32_t kind)
{
    static const char letters[REC_PART_KINDS + 1] = {
        [REC_PART_LIVE] = '#',   [REC_PART_ROUNDING] = ':', [REC_PART_KEPT] = '.',
        [REC_PART_MAPPED] = 'M', [REC_PART_STACK] = 'T',    [REC_PART_FILE] = 'F',
        [REC_PART_SHARED] = 'S', [REC_PART_OWN] = 'c',      [REC_PART_REST] = '?'};
    return letters[kind];
}

static void print_amount(FILE *out, const struct rss_breakdown_split *split, uint32_t kind)
{
    if (split == NULL) {
        return;
    }
    (void)fprintf(out, "%s%11s %6s", rss_breakdown_is_estimate(split, kind) ? "~" : " ",
                  format_bytes(split->bytes[kind]).text,
                  format_percent(split->bytes[kind], split->rss_bytes).text);
}

static void print_kinds(const struct report *report,
                        FILE *out,
                        const struct rss_breakdown_split *peak,
                        const struct rss_breakdown_split *end)
{
    for (uint32_t kind = 1; kind <= REC_PART_KINDS; kind++) {
        if ((peak != NULL ? peak->bytes[kind] : 0) + (end != NULL ? end->bytes[kind] : 0) > 0 ||
            kind == REC_PART_REST) {
            (void)fprintf(out, "  %s%c%s %-*s", report_paint(report, PAINT_COST), letter_of(kind),
                          report_unpaint(report), PHRASE_COLUMNS, rss_breakdown_kind(kind)->phrase);
            print_amount(out, peak, kind);
            (void)fputs(peak != NULL && end != NULL ? "    " : "", out);
            print_amount(out, end, kind);
            (void)fputc('\n', out);
        }
    }
}

// Print one character for each share of the bar. The running sum decides the length, so that
// rounding errors do not add up.
static void print_bar(const struct report *report,
                      FILE *out,
                      const char *name,
                      const struct rss_breakdown_split *split)
{
    if (split == NULL || split->rss_bytes == 0) {
        return;
    }
    size_t columns = report_width(report) - BAR_INDENT;
    columns = min_u64(columns, BAR_COLUMNS_MAX);
    (void)fprintf(out, "  %-*s", BAR_INDENT - 2, name);
    uint64_t sum = 0;
    size_t drawn = 0;
    for (uint32_t kind = 1; kind <= REC_PART_KINDS; kind++) {
        sum += split->bytes[kind];
        const double share = (double)sum / (double)split->rss_bytes;
        for (; (double)drawn + 0.5 < share * (double)columns && drawn < columns; drawn++) {
            (void)fputc(letter_of(kind), out);
        }
    }
    (void)fputc('\n', out);
}

// Append the call site of a stack: "function  file:line", or "function  module" if the line is
// unknown.
static void
append_site(const struct report *report, uint32_t node, size_t columns, struct strbuf *out)
{
    const struct call_site_location site = profile_call_site(report->profile, node);
    CLEANUP(strbuf_release) struct strbuf place = {0};
    report_append_line(report, &place, site.location);
    if (place.len == 0 && !location_names_module(report->profile, site.location)) {
        screen_append(&place, report_module(report, site.location));
    }
    report_append_function(report, out, site.location, site.is_inlined, columns - PLACE_COLUMNS);
    strbuf_append_text(out, place.len > 0 ? "  " : "");
    strbuf_append_text(out, strbuf_text(&place));
}

// Append the call site that mapped a part, or a file's name.
static void
append_name(const struct report *report, const struct rss_breakdown_part *part, struct strbuf *out)
{
    if (rss_breakdown_location(report->profile, part) == REC_NONE) {
        const char *path = profile_string(report->profile, part->path);
        screen_append(out, path[0] != '\0' ? path : "anonymous"); // the viewer's word
        return;
    }
    append_site(report, part->node, report_width(report) - AMOUNT_COLUMNS, out);
}

// Append "10.0 MiB of 20.0 MiB mapped  NAME".
static void
print_part(const struct report *report, FILE *out, const struct rss_breakdown_part *part)
{
    CLEANUP(strbuf_release) struct strbuf amount = {0};
    CLEANUP(strbuf_release) struct strbuf name = {0};
    CLEANUP(strbuf_release) struct strbuf cut = {0};
    strbuf_printf(&amount, "%10s of %s", format_bytes(part->rss_bytes).text,
                  format_bytes(part->virtual_bytes).text);
    append_name(report, part, &name);
    screen_append_cut(&cut, strbuf_text(&name), report_width(report) - AMOUNT_COLUMNS,
                      SCREEN_CUT_MIDDLE);
    (void)fprintf(out, "    %-28s  %s\n", strbuf_text(&amount), strbuf_text(&cut));
}

static MUST_USE enum err print_top(const struct report *report,
                                   FILE *out,
                                   const struct rss_breakdown_split *split,
                                   uint32_t kind)
{
    CLEANUP(rss_breakdown_part_vec_release) struct rss_breakdown_part_vec top = {0};
    struct rss_breakdown_rest rest;
    TRY(rss_breakdown_top_parts(report->profile, split, kind, TOP_PARTS, &top, &rest));
    if (top.len == 0) {
        return ERR_OK;
    }
    (void)fprintf(out, "\n  %s\n", rss_breakdown_kind(kind)->phrase);
    for (size_t i = 0; i < top.len; i++) {
        print_part(report, out, &top.items[i]);
    }
    if (rest.count > 0) {
        (void)fprintf(out, "    %10s in ", format_bytes(rest.rss_bytes).text);
        report_print_counted(out, rest.count, "more", "more", "\n");
    }
    return ERR_OK;
}

// Print what fragmentation keeps resident: empty pages, almost empty ones, and who is on those.
static void
print_fragmentation(const struct report *report, FILE *out, const struct rss_breakdown_split *split)
{
    const struct rss_breakdown_survivor_vec *survivors = &split->survivors;
    if (survivors->len == 0) {
        return;
    }
    (void)fprintf(out, "\n  fragmentation at %s\n    ~ %s are pages without a live block\n",
                  profile_has_ended(report->profile) ? "the end" : "last",
                  format_bytes(split->empty_page_bytes).text);
    (void)fprintf(out, "    ~ %s are pages that blocks of %s keep resident\n",
                  format_bytes(split->sparse_page_bytes).text,
                  format_bytes(split->sparse_block_bytes).text);
    for (size_t i = 0; i < survivors->len && i < TOP_PARTS; i++) {
        const struct rss_breakdown_survivor *survivor = &survivors->items[i];
        CLEANUP(strbuf_release) struct strbuf name = {0};
        CLEANUP(strbuf_release) struct strbuf cut = {0};
        append_site(report, survivor->node, report_width(report) - SURVIVOR_COLUMNS, &name);
        screen_append_cut(&cut, strbuf_text(&name), report_width(report) - SURVIVOR_COLUMNS,
                          SCREEN_CUT_MIDDLE);
        (void)fprintf(out, "    %10s held by %9s in %s since %s\n",
                      format_bytes(survivor->held_bytes).text,
                      format_bytes(survivor->block_bytes).text,
                      format_things(survivor->blocks, "block", "blocks").text,
                      screen_format_ms(survivor->oldest_ms).text);
        (void)fprintf(out, "    %10s %s\n", "", strbuf_text(&cut));
    }
}

// Print "live rounding kept [not explained]  NAME  FILE".
static void print_allocator(const struct report *report,
                            FILE *out,
                            const struct rss_allocator *allocator,
                            bool has_rest)
{
    CLEANUP(strbuf_release) struct strbuf name = {0};
    CLEANUP(strbuf_release) struct strbuf cut = {0};
    const char *file = path_file_name(profile_string(report->profile, allocator->module));
    screen_append(&name, allocator->module == 0 ? "unknown" : allocator->name);
    if (strcmp(file, allocator->name) != 0) {
        strbuf_append_text(&name, "  ");
        screen_append(&name, file);
    }
    screen_append_cut(&cut, strbuf_text(&name), report_width(report) - ALLOCATOR_COLUMNS,
                      SCREEN_CUT_MIDDLE);
    (void)fprintf(out, "    %10s %11s", format_bytes(allocator->live_bytes).text,
                  format_bytes(allocator->rounding_bytes).text);
    (void)fprintf(out, " %11s", format_bytes(allocator->kept_bytes).text);
    if (has_rest) {
        (void)fprintf(out, " %14s", format_bytes(allocator->rest_bytes).text);
    }
    (void)fprintf(out, "  %s\n", strbuf_text(&cut));
}

// Print the heap's share of each allocator, if there are several.
static MUST_USE enum err
print_allocators(const struct report *report, FILE *out, const struct rss_breakdown_split *split)
{
    CLEANUP(rss_allocator_vec_release) struct rss_allocator_vec all = {0};
    TRY(rss_allocators_list(report->profile, split, &all));
    if (all.len < 2) {
        return ERR_OK;
    }
    uint64_t rest_bytes = 0;
    for (size_t i = 0; i < all.len; i++) {
        rest_bytes += all.items[i].rest_bytes;
    }
    (void)fprintf(out, "\n  allocators at %s\n    %10s %11s %11s%s\n",
                  profile_has_ended(report->profile) ? "the end" : "last", "live", "~ rounding",
                  "~ kept", rest_bytes > 0 ? "  not explained" : "");
    for (size_t i = 0; i < all.len; i++) {
        print_allocator(report, out, &all.items[i], rest_bytes > 0);
    }
    return ERR_OK;
}

static void print_moment(FILE *out, const char *name, const struct rss_breakdown_split *split)
{
    if (split != NULL) {
        (void)fprintf(out, "  %12s %-9s", name, screen_format_ms(split->time_ms).text);
    }
}

// Print remarks on how the figures were measured.
static void print_remarks(const struct report *report,
                          FILE *out,
                          const struct rss_breakdown_split *peak,
                          const struct rss_breakdown_split *end)
{
    const uint64_t highest = report->rss_breakdown.peak_rss_bytes;
    if (peak != NULL && !rss_breakdown_is_of_peak(&report->rss_breakdown, peak)) {
        (void)fprintf(out, "  RSS was highest with %s", format_bytes(highest).text);
        if (report->rss_breakdown.peak_rss_ms > 0) {
            (void)fprintf(out, " before %s",
                          screen_format_ms(report->rss_breakdown.peak_rss_ms).text);
        }
        (void)fprintf(out, "; no breakdown was taken then.\n");
    } else if (peak != NULL && highest > peak->rss_bytes + peak->rss_bytes / 100) {
        (void)fprintf(out, "  RSS was highest with %s.\n", format_bytes(highest).text);
    }
    if (end != NULL && (end->flags & REC_SNAPSHOT_AT_EXIT) == 0 &&
        report->profile->recording.meta.state == REC_STATE_FINISHED) {
        (void)fprintf(out, "  The last snapshot was taken %s before the end.\n",
                      screen_format_ms(rss_breakdown_split_age_ms(report->profile, end)).text);
    }
    if (peak != NULL && peak->repeated_bytes > 0) {
        (void)fprintf(out, "  Pages that several processes share count once: %s were not added.\n",
                      format_bytes(peak->repeated_bytes).text);
    }
    (void)fprintf(out, "  ~ is an estimate; the sum is exact.\n%s",
                  peak != NULL && peak->bytes[REC_PART_OWN] > 0
                      ? "  A run without cairn does not have cairn's own part.\n"
                      : "");
}

// Return whether the filter selects whole processes only: pages have no function and no size.
static bool fits_filter(const struct filter *filter)
{
    const char *const texts[] = {filter->function,  filter->function_text, filter->file,
                                 filter->file_text, filter->module,        filter->module_text,
                                 filter->focus,     filter->ignore,        filter->show_from,
                                 filter->site_text, filter->thread};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        if (texts[i] != NULL) {
            return false;
        }
    }
    return !filter->has_range && !filter->has_sizes && !filter->has_lifetimes;
}

// Say why there is no breakdown, if the user asked for it.
static void print_reason(const struct report *report, FILE *out)
{
    if (report->options->sections != REPORT_RSS) {
        return;
    }
    const bool is_running = report->profile->recording.meta.state == REC_STATE_RUNNING;
    const char *reason =
        !fits_filter(&report->options->filter)
            ? "Resident memory consists of pages, which have no function, thread, time or size: "
              "this filter does not apply to it."
        : report->options->sort != COST_COUNT
            ? "Resident memory has no parts to sort by a figure of the heap."
        : report->rss_breakdown.samples.len > 0
            ? "No breakdown of resident memory was taken: each process ended before its memory map "
              "was read, or it could not be read."
        : is_running ? "Resident memory has not been looked at so far."
                     : "Resident memory is not known: no process was looked at, because it ended "
                       "too soon or could not be read, or because the file is of another tool.";
    report_view_title(report, out, "RESIDENT MEMORY: what RSS consisted of");
    screen_print_wrapped(out, reason, 2, report_width(report));
}

enum err report_print_memory(const struct report *report, FILE *out)
{
    const struct rss_breakdown_split *peak = rss_breakdown_peak(&report->rss_breakdown);
    const struct rss_breakdown_split *end = rss_breakdown_last(&report->rss_breakdown);
    const struct rss_breakdown_split *shown = peak != NULL ? peak : end;
    if (shown == NULL || !fits_filter(&report->options->filter) ||
        report->options->sort != COST_COUNT) {
        print_reason(report, out);
        return ERR_OK;
    }
    report_view_title(report, out, "RESIDENT MEMORY: what RSS consisted of");
    (void)fprintf(out, "  %*s", PHRASE_COLUMNS + 2, "");
    const bool is_of_peak = peak != NULL && rss_breakdown_is_of_peak(&report->rss_breakdown, peak);
    print_moment(out, is_of_peak ? "at the peak," : "highest seen", peak);
    print_moment(out, profile_has_ended(report->profile) ? "at the end," : "at last,", end);
    (void)fputc('\n', out);
    print_kinds(report, out, peak, end);
    (void)fprintf(out, "  = %-*s %11s", PHRASE_COLUMNS, "resident",
                  format_bytes(shown->rss_bytes).text);
    if (peak != NULL && end != NULL) {
        (void)fprintf(out, "%*s%11s", SHARE_COLUMNS, "", format_bytes(end->rss_bytes).text);
    }
    (void)fputs("\n\n", out);
    print_bar(report, out, is_of_peak ? "peak" : "highest", peak);
    print_bar(report, out, profile_has_ended(report->profile) ? "end" : "last", end);
    TRY(print_top(report, out, shown, REC_PART_MAPPED));
    TRY(print_top(report, out, shown, REC_PART_FILE));
    TRY(print_top(report, out, shown, REC_PART_SHARED));
    TRY(print_top(report, out, shown, REC_PART_REST));
    if (end != NULL) {
        TRY(print_allocators(report, out, end));
        print_fragmentation(report, out, end);
    }
    (void)fputc('\n', out);
    print_remarks(report, out, peak, end);
    return ERR_OK;
}
