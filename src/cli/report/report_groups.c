// SPDX-License-Identifier: MIT
// report_groups: prints the costs by function, file, module, thread, process or size.
//
//          peak   allocations      leaked
//      57.2 MiB        10,008    57.2 MiB  load  [server]
#include <string.h>

#include "base/compiler.h"
#include "base/minmax.h"
#include "cli/report/report_lines.h"
#include "cli/report/report_views.h"
#include "cli/text/screen_text.h"
#include "host/os/file.h"
#include "host/text/number.h"
#include "profile/accuracy/sampling.h"
#include "profile/tables/cost_groups.h"
#include "views_json/views/views.h"

enum {
    GROUPS_BY_DEFAULT = 20,
    COLUMN_COUNT = 3,
    NAME_AT = 44, // the column at which names begin
};

static MUST_USE enum err build_groups(const struct report *report, struct cost_groups *out)
{
    return cost_groups_build(&report->selection, report->options->group_by,
                             report_view_cost(report), out);
}

// Choose the costs to print: the sort key, and others.
static void choose_columns(const struct report *report,
                           const struct cost_groups *groups,
                           enum cost columns[COLUMN_COUNT])
{
    static const enum cost usual[] = {COST_PEAK_BYTES, COST_ALLOCATIONS, COST_LEAKED_BYTES,
                                      COST_ALLOCATED_BYTES};
    size_t count = 0;
    bool is_sorted = (groups->unknown >> report_view_cost(report) & 1) == 0;
    if (is_sorted) {
        columns[count++] = report_view_cost(report);
    }
    for (size_t i = 0; i < ARRAY_LEN(usual) && count < COLUMN_COUNT; i++) {
        bool is_known = (groups->unknown >> usual[i] & 1) == 0;
        bool is_new = count == 0 || columns[0] != usual[i];
        if (is_known && is_new) {
            columns[count++] = usual[i];
        }
    }
    while (count < COLUMN_COUNT) {
        columns[count++] = COST_COUNT;
    }
}

// Append "64 B to 127 B" for "64..127".
static void append_size(const char *range, struct strbuf *out)
{
    uint64_t low = 0;
    (void)number_take(&range, 10, &low); // cost_groups wrote it
    const uint64_t high = number_field(range + strlen(".."));
    strbuf_append_text(out, format_bytes(low).text);
    if (high > low) {
        strbuf_printf(out, " to %s", format_bytes(high).text);
    }
}

static void append_label(const struct report *report,
                         const struct cost_groups *groups,
                         size_t index,
                         struct strbuf *out)
{
    CLEANUP(strbuf_release) struct strbuf name = {0};
    CLEANUP(strbuf_release) struct strbuf detail = {0};
    CLEANUP(strbuf_release) struct strbuf safe = {0};
    bool is_full = report->options->use_full_names;
    bool is_path = groups->by == COST_GROUPS_BY_FILE || groups->by == COST_GROUPS_BY_MODULE ||
                   groups->by == COST_GROUPS_BY_PROCESS;
    const size_t errors =
        sampling_has_errors(&report->profile->recording) ? COLUMN_COUNT * REPORT_ERROR_COLUMNS : 0;
    size_t columns = report_width(report) - NAME_AT - errors;
    cost_group_append_name(groups, index, &name);
    cost_group_append_detail(groups, index, &detail);
    if (name.len == 0) {
        strbuf_append_text(out, "(unknown)");
    } else if (groups->by == COST_GROUPS_BY_SIZE) {
        append_size(strbuf_text(&name), out);
    } else if (groups->by == COST_GROUPS_BY_FUNCTION && !is_full) {
        screen_append_function(out, strbuf_text(&name), columns);
    } else {
        screen_append(&safe, is_path && !is_full ? path_file_name(strbuf_text(&name))
                                                 : strbuf_text(&name));
        screen_append_cut(out, strbuf_text(&safe), columns, SCREEN_CUT_START);
    }
    strbuf_clear(&safe);
    screen_append(&safe, is_full ? strbuf_text(&detail) : path_file_name(strbuf_text(&detail)));
    size_t used = screen_columns(strbuf_text(out)) + 4;
    if (safe.len > 0 && used + screen_columns(strbuf_text(&safe)) <= columns) {
        strbuf_printf(out, "  [%s]", strbuf_text(&safe));
    }
}

static void print_columns(const struct report *report,
                          FILE *out,
                          const enum cost columns[COLUMN_COUNT],
                          const struct costs *costs) // NULL: print the column heads
{
    static const struct costs none = {0};
    CLEANUP(strbuf_release) struct strbuf line = {0};
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        const char *text = "";
        struct human value;
        if (columns[i] != COST_COUNT && costs != NULL) {
            value = report_format_cost(columns[i], costs_get(costs, columns[i]));
            text = value.text;
        } else if (columns[i] != COST_COUNT) {
            text = profile_cost_info(report->profile, columns[i]).option;
        }
        strbuf_printf(&line, "%14s", text);
        const bool has_error = columns[i] != COST_COUNT && costs != NULL;
        (void)report_append_error(report, &line, has_error ? columns[i] : COST_PEAK_BYTES,
                                  has_error ? costs : &none);
    }
    (void)fprintf(out, "%s%s%s", costs != NULL ? report_paint(report, PAINT_COST) : "",
                  strbuf_text(&line), costs != NULL ? report_unpaint(report) : "");
}

enum err report_groups_text(const struct report *report, FILE *out)
{
    CLEANUP(cost_groups_release) struct cost_groups groups = {0};
    enum cost columns[COLUMN_COUNT];
    char title[32];
    TRY(build_groups(report, &groups));
    choose_columns(report, &groups, columns);
    (void)snprintf(title, sizeof(title), "BY %s", cost_group_by_name(groups.by)); // fits
    for (char *at = title; *at != '\0'; at++) {
        *at = (char)(*at >= 'a' && *at <= 'z' ? *at - 'a' + 'A' : *at);
    }
    report_view_title(report, out, title);
    print_columns(report, out, columns, NULL);
    (void)fputc('\n', out);
    size_t limit = report_view_limit(report, GROUPS_BY_DEFAULT);
    limit = groups.by == COST_GROUPS_BY_SIZE ? 0 : limit;
    const size_t shown = limited_u64(groups.items.len, limit);
    for (size_t i = 0; i < shown; i++) {
        CLEANUP(strbuf_release) struct strbuf label = {0};
        append_label(report, &groups, i, &label);
        print_columns(report, out, columns, &groups.items.items[i].costs);
        (void)fprintf(out, "  %s\n", strbuf_text(&label));
    }
    report_print_rest(out, groups.items.len, shown, "more", "more");
    return ERR_OK;
}

enum err report_groups_json(const struct report *report, struct view *view)
{
    VIEW_OBJECT(view, "groups", view_groups(view, report->options->group_by));
    return ERR_OK;
}
