// SPDX-License-Identifier: MIT
// report_text: prints the report as text: sections of call sites, at the width of the terminal.
//
//    1.   32.1 MiB  50.0%  Cache::insert(std::string const&)          a call site
//                          cache.cpp:42 in demo, 12,345 blocks
//       24.0 MiB, 1,200 blocks, by                                    one of its stacks
//         operator new(unsigned long)  [libstdc++.so.6]
//         Cache::insert(...)           cache.cpp:42 [demo]
//         main                         main.cpp:10

#include "base/compiler.h"
#include "base/minmax.h"
#include "cli/options/filter_options.h"
#include "cli/report/report_lines.h"
#include "cli/report/report_views.h"
#include "cli/text/screen_text.h"
#include "host/text/format.h"
#include "profile/accuracy/sampling.h"

enum {
    SITE_INDENT = 24, // of the lines below a call site
    STACK_INDENT = 6,
};

static void append_counted(struct strbuf *out, uint64_t count, const char *one, const char *many)
{
    strbuf_append_text(out, format_things(count, one, many).text);
}

// Append the companion of a cost: calls for bytes, bytes for calls. "12 blocks" or "1.2 MiB", in
// ASCII.
static void append_companion(const struct report *report,
                             struct strbuf *out,
                             const struct costs *costs,
                             enum cost cost)
{
    static const enum cost companions[COST_COUNT] = {
        [COST_PEAK_BYTES] = COST_PEAK_BLOCKS,
        [COST_PEAK_BLOCKS] = COST_PEAK_BYTES,
        [COST_ALLOCATIONS] = COST_ALLOCATED_BYTES,
        [COST_ALLOCATED_BYTES] = COST_ALLOCATIONS,
        [COST_FREES] = COST_ALLOCATIONS,
        [COST_FREED_BYTES] = COST_ALLOCATIONS,
        [COST_TEMPORARY] = COST_ALLOCATIONS,
        [COST_TEMPORARY_BYTES] = COST_ALLOCATIONS,
        [COST_LEAKED_BYTES] = COST_LEAKED_ALLOCATIONS,
        [COST_LEAKED_ALLOCATIONS] = COST_LEAKED_BYTES,
        [COST_OWN_PEAK_BYTES] = COST_ALLOCATIONS,
    };
    const enum cost companion = companions[cost];
    const uint64_t value = costs->values[companion];
    const bool is_bytes = cost_get_info(companion)->unit == COST_UNIT_BYTES;
    if (!selection_knows(&report->selection, companion)) {
        strbuf_append_text(out, is_bytes                        ? "bytes unknown"
                                : companion == COST_ALLOCATIONS ? "allocations unknown"
                                                                : "blocks unknown");
        return;
    }
    if (cost == COST_TEMPORARY) {
        strbuf_printf(out, "%s of its ", format_percent(costs->values[cost], value).text);
    }
    if (is_bytes) {
        strbuf_append_text(out, format_bytes(value).text);
    } else if (companion == COST_ALLOCATIONS) {
        append_counted(out, value, "allocation", "allocations");
    } else {
        append_counted(out, value, "block", "blocks");
    }
}

static MUST_USE enum err
print_stacks(const struct report *report, FILE *out, const struct call_site *site, enum cost cost)
{
    CLEANUP(u32_vec_release) struct u32_vec stacks = {0};
    TRY(call_sites_ranked_stacks(&report->sites, site, cost, &stacks));
    const size_t shown = limited_u64(stacks.len, report->options->stack_limit);
    uint64_t rest = 0;
    for (size_t i = 0; i < stacks.len; i++) {
        const struct costs *costs = call_sites_costs(&report->sites, stacks.items[i]);
        if (i >= shown) {
            rest += costs_get(costs, cost);
            continue;
        }
        if (stacks.len > 1) {
            CLEANUP(strbuf_release) struct strbuf companion = {0};
            CLEANUP(strbuf_release) struct strbuf error = {0};
            append_companion(report, &companion, costs, cost);
            (void)report_append_error(report, &error, cost, costs);
            (void)fprintf(out, "%*s%s%s%s%s, %s, by\n", STACK_INDENT, "",
                          report_paint(report, PAINT_COST),
                          report_format_cost(cost, costs_get(costs, cost)).text,
                          strbuf_text(&error), report_unpaint(report), strbuf_text(&companion));
        }
        report_print_frames(report, out, stacks.items[i]);
    }
    if (stacks.len > shown) {
        (void)fprintf(out, "%*s%s by ", STACK_INDENT, "", report_format_cost(cost, rest).text);
        report_print_counted(out, stacks.len - shown, "more stack", "more stacks", "\n");
    }
    return ERR_OK;
}

static void print_site_head(const struct report *report,
                            FILE *out,
                            const struct call_site *site,
                            enum cost cost,
                            size_t rank)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    uint64_t value = costs_get(&site->costs, cost);
    uint64_t whole = costs_get(&report->summary.costs, cost);
    CLEANUP(strbuf_release) struct strbuf head = {0};
    strbuf_printf(&head, "%3zu. %10s", rank, report_format_cost(cost, value).text);
    (void)report_append_error(report, &head, cost, &site->costs);
    strbuf_printf(&head, " %6s", format_percent(value, whole).text);
    report_append_function(report, &text, site->location, site->is_inlined,
                           report_width(report) - screen_columns(strbuf_text(&head)) - 2);
    (void)fprintf(out, "%s%s%s  %s%s%s\n", report_paint(report, PAINT_COST), strbuf_text(&head),
                  report_unpaint(report), report_paint(report, PAINT_FUNCTION), strbuf_text(&text),
                  report_unpaint(report));
}

static void print_site_place(const struct report *report,
                             FILE *out,
                             const struct call_site *site,
                             enum cost cost)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    CLEANUP(strbuf_release) struct strbuf cut = {0};
    CLEANUP(strbuf_release) struct strbuf companion = {0};
    append_companion(report, &companion, &site->costs, cost);
    const size_t width = report_width(report);
    const size_t taken = SITE_INDENT + companion.len;
    const size_t columns = width > taken ? width - taken : 0;
    report_append_line(report, &text, site->location);
    const char *module = report_module(report, site->location);
    if (module[0] != '\0') {
        report_append_module(report, &text, text.len > 0 ? " in " : "in ", module, ", ", columns);
    } else if (text.len > 0) {
        strbuf_append_text(&text, ", ");
    }
    screen_append_cut(&cut, strbuf_text(&text), columns, SCREEN_CUT_START);
    (void)fprintf(out, "%*s%s%s\n", SITE_INDENT, "", strbuf_text(&cut), strbuf_text(&companion));
}

// How fast it grew, and until or since when.
static void
append_growth_times(struct strbuf *text, const struct growth_entry *growth, uint64_t slice_ms)
{
    if (growth->class == GROWTH_GROWING && growth->slope_bytes_per_s >= 1) {
        const double slope = growth->slope_bytes_per_s;
        strbuf_printf(text, "%s by %s%s a second", growth->until_ms > 0 ? "" : ",",
                      format_byte_rate(slope).text,
                      sampling_format_rate_error(slope, growth->slope_error).text);
        if (growth->until_ms == 0) {
            strbuf_printf(text, " over the last %s", screen_format_ms(growth->slope_ms).text);
        }
    }
    if (growth->until_ms > 0) {
        strbuf_printf(text, " until %s, while there was work",
                      screen_format_ms(growth->until_ms).text);
    }
    if (growth->class == GROWTH_STOPPED && growth->latest_birth_slice != REC_NONE) {
        const uint64_t end_ms = (growth->latest_birth_slice + UINT64_C(1)) * slice_ms;
        strbuf_printf(text, ", since %s", screen_format_ms(end_ms).text);
    }
    if (growth->is_idle_since) {
        strbuf_append_text(text, ", but there was no work since");
    }
}

// Print "still growing, by 1.20 MiB a second over the last 4.50 s".
static void print_site_growth(const struct report *report, FILE *out, uint32_t site)
{
    static const char *const phrases[GROWTH_COUNT] = {
        [GROWTH_UNKNOWN] = "",
        [GROWTH_GROWING] = "still growing",
        [GROWTH_STOPPED] = "not growing any more",
        [GROWTH_START_UP] = "allocated at start-up and kept",
        [GROWTH_BOUNDED] = "renewed all the time, but not growing",
        [GROWTH_SAWTOOTH] = "rises and falls, and does not grow",
        [GROWTH_BURSTS] = "held in bursts, and does not grow",
        [GROWTH_LATE] = "allocated just before the end: too late to tell",
        [GROWTH_ONCE] = "one block, allocated once",
    };
    const struct growth_entry *growth = report_growth(report, site);
    if (growth == NULL) {
        return;
    }
    CLEANUP(strbuf_release) struct strbuf text = {0};
    strbuf_append_text(&text, growth->until_ms > 0 ? "grew" : phrases[growth->class]);
    append_growth_times(&text, growth, report->profile->recording.slice_ms);
    if (growth->confidence == CONFIDENCE_LOW && growth->class != GROWTH_LATE &&
        !growth->is_idle_since) {
        strbuf_append_text(&text, growth->until_ms > 0 ? " (unsure)" : " (by few samples)");
    }
    screen_print_wrapped(out, strbuf_text(&text), SITE_INDENT, report_width(report));
}

// Print the rest beyond the limit: "and 12 more call sites: 1.2 MiB, 3.1%".
static void print_remaining(
    const struct report *report, FILE *out, const struct u32_vec *ids, size_t shown, enum cost cost)
{
    uint64_t rest = 0;
    for (size_t i = shown; i < ids->len; i++) {
        rest += costs_get(&report->sites.sites.items[ids->items[i]].costs, cost);
    }
    if (ids->len > shown) {
        (void)fprintf(out, "     %10s %6s  at ", report_format_cost(cost, rest).text,
                      format_percent(rest, costs_get(&report->summary.costs, cost)).text);
        report_print_counted(out, ids->len - shown, "more call site", "more call sites", "\n");
    }
}

enum err report_print_section(const struct report *report, FILE *out, enum cost cost)
{
    static const char *const titles[COST_COUNT] = {
        [COST_PEAK_BYTES] = "PEAK MEMORY, by call site",
        [COST_PEAK_BLOCKS] = "BLOCKS AT THE PEAK, by call site",
        [COST_ALLOCATIONS] = "ALLOCATIONS, by call site",
        [COST_ALLOCATED_BYTES] = "ALLOCATED BYTES, by call site",
        [COST_FREES] = "FREES, by call site",
        [COST_FREED_BYTES] = "FREED BYTES, by call site",
        [COST_TEMPORARY] = "TEMPORARY ALLOCATIONS: freed by the next heap call of their thread",
        [COST_TEMPORARY_BYTES] = "TEMPORARY BYTES: freed by the next heap call of their thread",
        [COST_LEAKED_BYTES] = "LEAKED: never freed",
        [COST_LEAKED_ALLOCATIONS] = "LEAKED BLOCKS: never freed",
        [COST_OWN_PEAK_BYTES] = "OWN PEAKS, by call site",
    };
    CLEANUP(u32_vec_release) struct u32_vec ids = {0};
    TRY(call_sites_ranked(&report->sites, cost, &ids));
    const char *live_title = cost == COST_LEAKED_BYTES         ? "LIVE: not freed so far"
                             : cost == COST_LEAKED_ALLOCATIONS ? "LIVE BLOCKS: not freed so far"
                                                               : titles[cost];
    report_print_title(report, out, profile_has_ended(report->profile) ? titles[cost] : live_title);
    if (!selection_knows(&report->selection, cost)) {
        (void)fprintf(out, "     unknown: %s\n",
                      profile_knows(report->profile, cost)
                          ? "the filter leaves it open"
                          : "the file that was imported does not say");
        return ERR_OK;
    }
    if (ids.len == 0) {
        (void)fprintf(out, "     nothing\n");
        return ERR_OK;
    }
    const size_t shown = limited_u64(ids.len, report->options->site_limit);
    for (size_t i = 0; i < shown; i++) {
        const struct call_site *site = &report->sites.sites.items[ids.items[i]];
        (void)fprintf(out, "\n");
        print_site_head(report, out, site, cost, i + 1);
        print_site_place(report, out, site, cost);
        print_site_growth(report, out, ids.items[i]);
        TRY(print_stacks(report, out, site, cost));
    }
    if (ids.len > shown) {
        (void)fprintf(out, "\n");
        print_remaining(report, out, &ids, shown, cost);
    }
    return ERR_OK;
}

static MUST_USE enum err print_sections(const struct report *report, FILE *out)
{
    enum cost sections[REPORT_COSTS];
    const size_t count = report_sections(report, sections);
    for (size_t i = 0; i < count; i++) {
        TRY(report_print_section(report, out, sections[i]));
        bool is_leaked = sections[i] == COST_LEAKED_BYTES || sections[i] == COST_LEAKED_ALLOCATIONS;
        if (is_leaked && report->selection.suppressed.stack_count > 0) {
            report_view_title(report, out,
                              profile_has_ended(report->profile)
                                  ? "SUPPRESSED: leaks that match a rule"
                                  : "SUPPRESSED: live memory that matches a rule");
            filter_print_suppressions(&report->selection, &report->options->filter,
                                      report_width(report), out);
        }
    }
    return ERR_OK;
}

static MUST_USE enum err print_views(const struct report *report, FILE *out)
{
    static const struct {
        uint32_t bit;
        enum err (*print)(const struct report *report, FILE *out);
    } views[] = {
        {REPORT_GROUPS, report_groups_text},         {REPORT_FUNCTIONS, report_functions_text},
        {REPORT_CALLERS, report_callers_text},       {REPORT_TREE, report_tree_text},
        {REPORT_HISTOGRAMS, report_histograms_text},
    };
    for (size_t i = 0; i < ARRAY_LEN(views); i++) {
        if ((report->options->views & views[i].bit) != 0) {
            TRY(views[i].print(report, out));
        }
    }
    return ERR_OK;
}

enum err report_write_text(const struct report *report, FILE *out)
{
    report_print_header(report, out);
    report_print_totals(report, out);
    report_print_filter(report, out);
    const bool is_empty = report_print_empty(report, out);
    if (report->options->views != 0 && !is_empty) {
        return print_views(report, out);
    }
    if (!is_empty && report_is_screen(report->options)) {
        return report_print_screen(report, out);
    }
    // A process without allocations has memory, too.
    const bool is_short = is_empty && report_is_screen(report->options);
    if (is_short || report->options->sections == REPORT_ALL) {
        report_print_findings(report, out);
    }
    if (is_short) {
        report_print_most_of_rss(report, out);
    }
    if (!is_empty) {
        TRY(print_sections(report, out));
    }
    if ((report->options->sections & REPORT_RSS) != 0) {
        TRY(report_print_memory(report, out));
    }
    if (report->options->sections != REPORT_ALL && report->options->sort == COST_COUNT) {
        return ERR_OK;
    }
    TRY(report_print_processes(report, out));
    TRY(report_print_coverage(report, out));
    TRY(report_print_adhoc(report, out));
    report_print_marks(report, out);
    report_print_hooks(report, out);
    report_print_notes(report, out);
    return ERR_OK;
}
