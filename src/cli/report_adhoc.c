// SPDX-License-Identifier: MIT
// report_adhoc: the text report's section on events that the program reported. See report_lines.h.
//
//   EVENTS: what the program reported
//         weight      events
//           3072           3  [event bytes sent]  send_all  net.c:12
#include <inttypes.h>

#include "base/compiler.h"
#include "cli/report_lines.h"
#include "cli/screen_text.h"
#include "profile/adhoc.h"
#include "profile/ledger.h"

enum {
    ADHOC_LINES = 20,
    NUMBER_COLUMNS = 30, // before the name, and the spaces behind it
    NAME_COLUMNS = 22,
    PLACE_COLUMNS = 14,
};

static MUST_USE enum err
print_one(const struct report *report, FILE *out, const struct rec_adhoc *adhoc)
{
    CLEANUP(u32_vec_release) struct u32_vec locations = {0};
    CLEANUP(u32_vec_release) struct u32_vec inlined = {0};
    CLEANUP(strbuf_release) struct strbuf text = {0};
    CLEANUP(strbuf_release) struct strbuf place = {0};
    CLEANUP(strbuf_release) struct strbuf cut = {0};
    TRY(ledger_stack(report->profile, adhoc->node, &locations, &inlined));
    if (locations.len > 0) {
        report_append_function(report, &text, locations.items[0], false, NAME_COLUMNS);
    }
    size_t caller = 1;
    while (caller + 1 < locations.len && inlined.items[caller] != 0) { // cairn.h's own
        caller++;
    }
    if (caller < locations.len) {
        const size_t columns = report_width(report) - NUMBER_COLUMNS - NAME_COLUMNS - PLACE_COLUMNS;
        strbuf_append_text(&text, "  ");
        report_append_function(report, &text, locations.items[caller], false, columns);
        report_append_line(report, &place, locations.items[caller]);
        screen_append_cut(&cut, strbuf_text(&place), PLACE_COLUMNS, SCREEN_CUT_START);
    }
    (void)fprintf(out, "  %11" PRIu64 " %11" PRIu64 "  %s  %s\n", adhoc->weight, adhoc->events,
                  strbuf_text(&text), strbuf_text(&cut));
    return ERR_OK;
}

enum err report_print_adhoc(const struct report *report, FILE *out)
{
    CLEANUP(u32_vec_release) struct u32_vec ranked = {0};
    TRY(adhoc_ranked(report->profile, &ranked));
    if (ranked.len == 0) {
        return ERR_OK;
    }
    (void)fprintf(out, "\n%sEVENTS: what the program reported%s\n  %11s %11s\n",
                  report_paint(report, PAINT_TITLE), report_unpaint(report), "weight", "events");
    for (size_t i = 0; i < ranked.len && i < ADHOC_LINES; i++) {
        TRY(print_one(report, out, report->profile->recording.adhoc + ranked.items[i]));
    }
    if (ranked.len > ADHOC_LINES) {
        (void)fprintf(out, "  and ");
        report_print_counted(out, ranked.len - ADHOC_LINES, "more", "more", "\n");
    }
    return ERR_OK;
}
