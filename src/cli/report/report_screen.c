// SPDX-License-Identifier: MIT
// report_screen: the report on one screen, and the summary after a run. See report_lines.h.
//
// Whatever was recorded, the screen has a limited number of lines: each list is cut, and says how
// to see the rest.

#include <string.h>

#include "base/compiler.h"
#include "base/minmax.h"
#include "cli/report/report_lines.h"
#include "cli/text/location_text.h"
#include "cli/text/screen_text.h"
#include "profile/model/function_name.h"
#include "profile/names/distinct_name.h"

enum {
    SUMMARY_SITES = 3,
    SCREEN_SITES = 5,
    SITE_INDENT = 14,
    SHARE_COLUMNS = 8,
    FINDING_INDENT = 4,
    FINDINGS_MAX = 6,
    WRAPPERS_INDENT = 18,
    FINDING_BYTES_MAX = 600, // names may be megabytes
};

// The call sites with most of a cost. The first ones are shown.
struct site_list {
    enum cost cost;
    uint64_t whole; // for shares; 0: there are none
    struct u32_vec ids;
    size_t count; // of the shown ones
};

static void site_list_release(struct site_list *list)
{
    u32_vec_release(&list->ids);
}

static uint32_t location_at(const struct report *report, const struct site_list *list, size_t place)
{
    return report->sites.sites.items[list->ids.items[place]].location;
}

// Append the name of a site's function in at most `columns`. If the name of another one in the list
// is cut to the same text, the words in which they differ follow.
static void append_name(const struct report *report,
                        const struct site_list *list,
                        size_t place,
                        size_t columns,
                        struct strbuf *out)
{
    const uint32_t location = location_at(report, list, place);
    CLEANUP(strbuf_release) struct strbuf name = {0};
    CLEANUP(strbuf_release) struct strbuf words = {0};
    CLEANUP(strbuf_release) struct strbuf safe = {0};
    CLEANUP(strbuf_release) struct strbuf cut = {0};
    report_append_function(report, &name, location, false, columns);
    struct name_peers peers = name_peers_of(
        location == REC_NONE ? "" : profile_location_function(report->profile, location));
    for (size_t i = 0; i < list->count && location != REC_NONE; i++) {
        const uint32_t other = location_at(report, list, i);
        CLEANUP(strbuf_release) struct strbuf text = {0};
        report_append_function(report, &text, other, false, columns);
        if (other != REC_NONE && strcmp(strbuf_text(&text), strbuf_text(&name)) == 0) {
            name_peers_add(&peers, profile_location_function(report->profile, other));
        }
    }
    name_append_difference(&words, &peers);
    screen_append(&safe, strbuf_text(&words));
    screen_append_cut(&cut, strbuf_text(&safe), columns / 2, SCREEN_CUT_MIDDLE);
    if (cut.len == 0) {
        strbuf_append_text(out, strbuf_text(&name));
        return;
    }
    const size_t taken = strlen(" []") + screen_columns(strbuf_text(&cut));
    report_append_function(report, out, location, false, columns - taken);
    strbuf_printf(out, " [%s]", strbuf_text(&cut));
}

// Print a line such as "  1.2 MiB   12%  load(char const*)  app.c:12".
static void print_site(const struct report *report,
                       FILE *out,
                       const struct site_list *list,
                       size_t place_in_list)
{
    enum {
        PLACE_COLUMNS = 30
    };
    const struct call_site *site = &report->sites.sites.items[list->ids.items[place_in_list]];
    const enum cost cost = list->cost;
    const uint64_t whole = list->whole;
    CLEANUP(strbuf_release) struct strbuf place = {0};
    CLEANUP(strbuf_release) struct strbuf cut = {0};
    CLEANUP(strbuf_release) struct strbuf function = {0};
    const uint64_t value = costs_get(&site->costs, cost);
    report_append_line(report, &place, site->location);
    if (place.len == 0 && !location_names_module(report->profile, site->location)) {
        report_append_module(report, &place, "", report_module(report, site->location), "",
                             PLACE_COLUMNS);
    }
    screen_append_cut(&cut, strbuf_text(&place), PLACE_COLUMNS, SCREEN_CUT_START);
    size_t taken = SITE_INDENT + 2 + screen_columns(strbuf_text(&cut));
    CLEANUP(strbuf_release) struct strbuf error = {0};
    taken += report_append_error(report, &error, cost, &site->costs);
    (void)fprintf(out, "  %10s%s", report_format_cost(cost, value).text, strbuf_text(&error));
    if (whole > 0) {
        taken += SHARE_COLUMNS;
        (void)fprintf(out, "  %6s", format_percent(value, whole).text);
    }
    append_name(report, list, place_in_list, report_width(report) - taken, &function);
    (void)fprintf(out, "  %s%s%s\n", strbuf_text(&function), cut.len > 0 ? "  " : "",
                  strbuf_text(&cut));
}

static MUST_USE enum err
print_sites(const struct report *report, FILE *out, enum cost cost, size_t limit, bool has_shares)
{
    static const struct {
        const char *title;
        const char *option;
    } lists[COST_COUNT] = {
        [COST_PEAK_BYTES] = {"most at the peak", "-p"},
        [COST_ALLOCATIONS] = {"most allocations", "-a"},
        [COST_TEMPORARY] = {"most temporary allocations", "-T"},
        [COST_LEAKED_BYTES] = {"most leaked", "-l"},
    };
    CLEANUP(site_list_release)
    struct site_list list = {.cost = cost,
                             .whole = has_shares ? costs_get(&report->summary.costs, cost) : 0};
    TRY(call_sites_ranked(&report->sites, cost, &list.ids));
    if (list.ids.len == 0 || !selection_knows(&report->selection, cost)) {
        return ERR_OK;
    }
    list.count = min_u64(list.ids.len, limit);
    const bool is_live = cost == COST_LEAKED_BYTES && !profile_has_ended(report->profile);
    (void)fprintf(out, "\n  %s%s%s", report_paint(report, PAINT_TITLE),
                  is_live ? "most live" : lists[cost].title, report_unpaint(report));
    if (has_shares) {
        (void)fprintf(out, " (%s)", lists[cost].option);
    }
    (void)fputc('\n', out);
    for (size_t i = 0; i < list.count; i++) {
        print_site(report, out, &list, i);
    }
    if (has_shares && list.ids.len > limit) {
        (void)fprintf(out, "  %*s  and ", SITE_INDENT + SHARE_COLUMNS - 4, "");
        report_print_counted(out, list.ids.len - limit, "more call site", "more call sites", "\n");
    }
    return ERR_OK;
}

// Print the sentence of a finding, and where to look.
static void print_finding(const struct report *report, FILE *out, const struct finding *finding)
{
    const bool is_sure = finding->confidence == CONFIDENCE_HIGH;
    CLEANUP(strbuf_release) struct strbuf safe = {0};
    CLEANUP(strbuf_release) struct strbuf cut = {0};
    screen_append(&safe, findings_sentence(&report->findings, finding));
    screen_append_cut(&cut, strbuf_text(&safe), FINDING_BYTES_MAX, SCREEN_CUT_MIDDLE);
    strbuf_printf(&cut, " [%s%s%s]", finding->look, is_sure ? "" : "; confidence: ",
                  is_sure ? "" : growth_confidence_name(finding->confidence));
    screen_print_wrapped(out, strbuf_text(&cut), FINDING_INDENT, report_width(report));
}

void report_print_explanations(const struct report *report, FILE *out, enum cost cost)
{
    enum {
        PEAK = 1 << FINDING_PEAK | 1 << FINDING_UNEVEN,
        LEAKED = 1 << FINDING_GROWTH | 1 << FINDING_UNFREED | 1 << FINDING_OOM,
        RSS = 1 << FINDING_RSS | 1 << FINDING_SPARSE | 1 << FINDING_HUGE | 1 << FINDING_UNSEEN,
    };
    static const unsigned kinds[COST_COUNT + 1] = {
        [COST_PEAK_BYTES] = PEAK,
        [COST_LEAKED_BYTES] = LEAKED,
        [COST_ALLOCATIONS] = 1 << FINDING_CHURN,
        [COST_ALLOCATED_BYTES] = 1 << FINDING_CHURN,
        [COST_TEMPORARY] = 1 << FINDING_CHURN,
        [COST_COUNT] = RSS,
    };
    bool is_first = true;
    for (size_t i = 0; i < report->findings.items.len; i++) {
        const struct finding *finding = &report->findings.items.items[i];
        if ((kinds[cost] >> finding->kind & 1) != 0) {
            (void)fputs(is_first ? "\n" : "", out);
            is_first = false;
            print_finding(report, out, finding);
        }
    }
}

void report_print_oom(const struct report *report, const char *prefix, FILE *out)
{
    const struct findings *findings = &report->findings;
    if (findings->items.len == 0 || findings->items.items[0].kind != FINDING_OOM) {
        return;
    }
    CLEANUP(strbuf_release) struct strbuf safe = {0};
    screen_append(&safe, findings_sentence(findings, &findings->items.items[0]));
    (void)fprintf(out, "%s%s\n", prefix, strbuf_text(&safe));
}

void report_print_findings(const struct report *report, FILE *out)
{
    const struct findings *findings = &report->findings;
    const size_t count = min_u64(findings->items.len, FINDINGS_MAX);
    if (count > 0) {
        report_print_title(report, out, "FINDINGS");
    }
    for (size_t i = 0; i < count; i++) {
        const struct finding *finding = &findings->items.items[i];
        (void)fprintf(out, "  %s%s%s\n", report_paint(report, PAINT_COST),
                      finding_kind_name(finding->kind), report_unpaint(report));
        print_finding(report, out, finding);
    }
}

// Print how many functions have no name, and which functions call sites pass over.
static void print_about_names(const struct report *report, FILE *out)
{
    const struct code_index *code = &report->profile->code;
    const struct wrapper_vec *wrappers = &report->profile->wrappers;
    CLEANUP(strbuf_release) struct strbuf text = {0};
    CLEANUP(strbuf_release) struct strbuf safe = {0};
    CLEANUP(strbuf_release) struct strbuf cut = {0};
    size_t unnamed = 0;
    for (size_t i = 0; i < code->functions.len; i++) {
        unnamed += (code->functions.items[i].flags & CODE_UNKNOWN) != 0;
    }
    if (unnamed > 0) {
        (void)fputs("\n  ", out);
        report_print_counted(out, unnamed, "function has", "functions have",
                             " no name; --all says how to get names.\n");
    }
    for (size_t i = 0; i < wrappers->len; i++) {
        const uint32_t name = code->functions.items[wrappers->items[i].function].name;
        strbuf_append_text(&text, i == 0 ? "" : ", ");
        name_append(&text, string_table_get(&code->names, name), NAME_NO_TEMPLATES);
        strbuf_append_text(&text, wrappers->items[i].is_asked ? " (--hide)" : "");
    }
    if (wrappers->len > 0) {
        screen_append(&safe, strbuf_text(&text));
        screen_append_cut(&cut, strbuf_text(&safe), report_width(report) - WRAPPERS_INDENT,
                          SCREEN_CUT_MIDDLE);
        (void)fprintf(out, "\n  Wrappers found: %s\n", strbuf_text(&cut));
    }
}

void report_print_most_of_rss(const struct report *report, FILE *out)
{
    const struct rss_breakdown_split *split = rss_breakdown_peak(&report->rss_breakdown);
    if (split == NULL || !report->selection.is_everything) {
        return;
    }
    (void)fprintf(out, "\n  %smost of RSS%s (-r)\n", report_paint(report, PAINT_TITLE),
                  report_unpaint(report));
    for (uint32_t kind = 1; kind <= REC_PART_KINDS; kind++) {
        if (split->bytes[kind] >= split->rss_bytes / 20) {
            (void)fprintf(out, "  %10s  %6s  %s\n", format_bytes(split->bytes[kind]).text,
                          format_percent(split->bytes[kind], split->rss_bytes).text,
                          rss_breakdown_kind(kind)->phrase);
        }
    }
}

enum err report_print_screen(const struct report *report, FILE *out)
{
    enum cost costs[REPORT_COSTS];
    const size_t count = report_sections(report, costs);
    const uint32_t wanted = report->options->has_limit ? report->options->site_limit : SCREEN_SITES;
    const size_t limit = wanted == 0 || wanted > SCREEN_SITES * 2 ? SCREEN_SITES * 2 : wanted;
    report_print_findings(report, out);
    for (size_t i = 0; i < count; i++) {
        TRY(print_sites(report, out, costs[i], limit, true));
    }
    report_print_most_of_rss(report, out);
    print_about_names(report, out);
    (void)fprintf(out,
                  "\n  --all prints every section with call stacks; --help lists the views.\n");
    return ERR_OK;
}

enum err report_write_summary(const struct report *report, FILE *out)
{
    enum cost costs[REPORT_COSTS];
    const size_t count = report_sections(report, costs);
    report_print_header(report, out);
    report_print_totals(report, out);
    const bool is_empty = report_print_empty(report, out);
    report_print_findings(report, out); // a process without allocations has memory, too
    if (is_empty) {
        return ERR_OK;
    }
    for (size_t i = 0; i < count; i++) {
        TRY(print_sites(report, out, costs[i], SUMMARY_SITES, false));
    }
    return ERR_OK;
}
