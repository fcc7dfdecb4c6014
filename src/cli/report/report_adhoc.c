// SPDX-License-Identifier: MIT
// report_adhoc: the text report's section on events that the program reported. See report_lines.h.
//
//   EVENTS: what the program reported
//         weight      events
//           3072           3  [event bytes sent]  send_all  net.c:12
#include <inttypes.h>

#include "base/compiler.h"
#include "cli/report/report_lines.h"
#include "cli/text/screen_text.h"
#include "profile/tables/adhoc.h"

enum {
    ADHOC_LINES = 20,
    NUMBER_COLUMNS = 30, // before the name, with the spaces after the numbers
    NAME_COLUMNS = 22,
    PLACE_COLUMNS = 14,
};

static MUST_USE enum err print_one(const struct report *report,
                                   FILE *out,
                                   const struct adhoc_list *list,
                                   const struct adhoc_event *event)
{
    const uint32_t *locations = list->locations.items + event->first;
    const uint32_t *inlined = list->inlined.items + event->first;
    CLEANUP(strbuf_release) struct strbuf text = {0};
    CLEANUP(strbuf_release) struct strbuf place = {0};
    CLEANUP(strbuf_release) struct strbuf cut = {0};
    if (event->count > 0) {
        report_append_function(report, &text, locations[0], false, NAME_COLUMNS);
    }
    size_t caller = 1;
    while (caller + 1 < event->count && inlined[caller] != 0) { // cairn.h's own
        caller++;
    }
    if (caller < event->count) {
        const size_t columns = report_width(report) - NUMBER_COLUMNS - NAME_COLUMNS - PLACE_COLUMNS;
        strbuf_append_text(&text, "  ");
        report_append_function(report, &text, locations[caller], false, columns);
        report_append_line(report, &place, locations[caller]);
        screen_append_cut(&cut, strbuf_text(&place), PLACE_COLUMNS, SCREEN_CUT_START);
    }
    TRY(strbuf_result(&text));
    (void)fprintf(out, "  %11" PRIu64 " %11" PRIu64 "  %s  %s\n", event->weight, event->events,
                  strbuf_text(&text), strbuf_text(&cut));
    return ERR_OK;
}

enum err report_print_adhoc(const struct report *report, FILE *out)
{
    CLEANUP(adhoc_release) struct adhoc_list list = {0};
    TRY(adhoc_collect(report->profile, ADHOC_BY_PROCESS, &list));
    const size_t count = list.events.len;
    if (count == 0) {
        return ERR_OK;
    }
    (void)fprintf(out, "\n%sEVENTS: what the program reported%s\n  %11s %11s\n",
                  report_paint(report, PAINT_TITLE), report_unpaint(report), "weight", "events");
    for (size_t i = 0; i < count && i < ADHOC_LINES; i++) {
        TRY(print_one(report, out, &list, list.events.items + i));
    }
    report_print_rest(out, count, ADHOC_LINES, "more", "more");
    return ERR_OK;
}
