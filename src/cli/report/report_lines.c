// SPDX-License-Identifier: MIT
// report_lines: formats colours, names and numbers of the text report. See report_lines.h.
#include "cli/report/report_lines.h"

#include <stdio.h>

#include "cli/text/location_text.h"
#include "cli/text/screen_text.h"
#include "host/os/file.h"
#include "host/text/format.h"
#include "profile/accuracy/sampling.h"

const char *report_paint(const struct report *report, enum paint paint)
{
    return paint_begin(report->options->use_color, paint);
}

const char *report_unpaint(const struct report *report)
{
    return paint_end(report->options->use_color);
}

size_t report_width(const struct report *report)
{
    return report->options->use_full_names ? REPORT_WIDTH_UNLIMITED
                                           : report->options->width_columns;
}

const char *report_string(const struct report *report, struct strbuf *buffer, rec_string id)
{
    strbuf_clear(buffer);
    screen_append(buffer, profile_string(report->profile, id));
    return strbuf_text(buffer);
}

struct human report_format_cost(enum cost cost, uint64_t value)
{
    return cost_get_info(cost)->unit == COST_UNIT_BYTES ? format_bytes(value) : format_count(value);
}

size_t report_append_error(const struct report *report,
                           struct strbuf *out,
                           enum cost cost,
                           const struct costs *costs)
{
    const struct sampling sampling = sampling_of(&report->profile->recording);
    if (sampling.bytes == 0) {
        return 0;
    }
    const struct costs errors = sampling_errors(&sampling, costs);
    const struct human share =
        sampling_format_error(costs_get(costs, cost), costs_get(&errors, cost));
    const size_t taken = screen_columns(share.text);
    strbuf_printf(out, "%*s%s",
                  taken < REPORT_ERROR_COLUMNS ? (int)(REPORT_ERROR_COLUMNS - taken) : 0, "",
                  share.text);
    return REPORT_ERROR_COLUMNS;
}

void report_print_title(const struct report *report, FILE *out, const char *title)
{
    CLEANUP(strbuf_release) struct strbuf mark = {0};
    sampling_append_mark(&report->profile->recording, &mark);
    (void)fprintf(out, "\n%s%s%s%s\n", report_paint(report, PAINT_TITLE), title, strbuf_text(&mark),
                  report_unpaint(report));
}

void report_print_counted(
    FILE *out, uint64_t count, const char *one, const char *many, const char *after)
{
    (void)fprintf(out, "%s%s", format_things(count, one, many).text, after);
}

void report_print_rest(FILE *out, uint64_t count, uint64_t shown, const char *one, const char *many)
{
    if (count > shown) {
        (void)fputs("  and ", out); // errors are found at the end
        report_print_counted(out, count - shown, one, many, "\n");
    }
}

void report_append_function(const struct report *report,
                            struct strbuf *out,
                            uint32_t location,
                            bool is_inlined,
                            size_t columns)
{
    location_append_function(out, report->profile, location, is_inlined,
                             report->options->use_full_names ? SIZE_MAX : columns);
}

void report_append_line(const struct report *report, struct strbuf *out, uint32_t location)
{
    location_append_line(out, report->profile, location, report->options->use_full_names);
}

void report_append_module(const struct report *report,
                          struct strbuf *place,
                          const char *before,
                          const char *module,
                          const char *after,
                          size_t columns)
{
    CLEANUP(strbuf_release) struct strbuf safe = {0};
    const size_t taken =
        screen_columns(strbuf_text(place)) + screen_columns(before) + screen_columns(after);
    size_t room = columns > taken ? columns - taken : 0;
    room = room > MODULE_COLUMNS_MIN ? room : MODULE_COLUMNS_MIN;
    screen_append(&safe, module);
    strbuf_append_text(place, before);
    screen_append_cut(place, strbuf_text(&safe),
                      report->options->use_full_names ? REPORT_WIDTH_UNLIMITED : room,
                      SCREEN_CUT_MIDDLE);
    strbuf_append_text(place, after);
}

const char *report_module(const struct report *report, uint32_t location)
{
    const char *path =
        location != REC_NONE ? profile_location_module(report->profile, location) : "";
    return report->options->use_full_names ? path : path_file_name(path);
}
