// SPDX-License-Identifier: MIT
// report_adhoc: the sections on what is not the heap: what the program reported itself, and the
// functions that cairn's agent hooked, by module. See report_lines.h.
//
//        weight      events
//          3072           3  [event bytes sent]  send_all  net.c:12
#include <inttypes.h>

#include "base/compiler.h"
#include "cli/report/report_lines.h"
#include "cli/report/report_views.h"
#include "cli/text/screen_text.h"
#include "profile/tables/adhoc.h"

enum {
    ADHOC_LINES = 20,
    NUMBER_COLUMNS = 30, // before the name, with the spaces after the numbers
    NAME_COLUMNS = 22,
    PLACE_COLUMNS = 14,
};

static void print_one(const struct report *report,
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
    (void)fprintf(out, "  %11" PRIu64 " %11" PRIu64 "  %s  %s\n", event->weight, event->events,
                  strbuf_text(&text), strbuf_text(&cut));
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
        print_one(report, out, &list, list.events.items + i);
    }
    report_print_rest(out, count, ADHOC_LINES, "more", "more");
    return ERR_OK;
}

enum {
    MODULE_INDENT = 2,
    FUNCTIONS_INDENT = 4,
};

// Whether an earlier hook is of the same module.
static bool is_printed(const struct recording *recording, size_t index)
{
    for (size_t i = 0; i < index; i++) {
        if (recording->hooks[i].module == recording->hooks[index].module) {
            return true;
        }
    }
    return false;
}

// The reason is said of each function that is not hooked.
static void append_function(const struct report *report,
                            const struct rec_hook *hook,
                            struct strbuf *text,
                            struct strbuf *out)
{
    strbuf_append_text(out, out->len > 0 ? ", " : "");
    strbuf_append_text(out, hook->function == 0 ? "and others"
                                                : report_string(report, text, hook->function));
    if (hook->reason != 0) {
        strbuf_printf(out, " (not hooked: it %s)", report_string(report, text, hook->reason));
    }
}

static void print_module(const struct report *report, FILE *out, size_t first)
{
    const struct recording *recording = &report->profile->recording;
    const rec_string module = recording->hooks[first].module;
    CLEANUP(strbuf_release) struct strbuf text = {0};
    CLEANUP(strbuf_release) struct strbuf title = {0};
    CLEANUP(strbuf_release) struct strbuf functions = {0};
    rec_string allocator = 0;
    for (size_t i = first; i < recording->hook_count; i++) {
        if (recording->hooks[i].module == module) {
            append_function(report, recording->hooks + i, &text, &functions);
            allocator = allocator != 0 ? allocator : recording->hooks[i].allocator;
        }
    }
    strbuf_append_text(&title,
                       module == 0 ? "further modules" : report_string(report, &text, module));
    if (allocator != 0) {
        strbuf_printf(&title, " (%s)", report_string(report, &text, allocator));
    }
    screen_print_wrapped(out, strbuf_text(&title), MODULE_INDENT, report_width(report));
    screen_print_wrapped(out, strbuf_text(&functions), FUNCTIONS_INDENT, report_width(report));
}

void report_print_hooks(const struct report *report, FILE *out)
{
    const struct recording *recording = &report->profile->recording;
    if (recording->hook_count > 0) {
        report_view_title(report, out, "HOOKED FUNCTIONS: what was recorded where");
    }
    for (size_t i = 0; i < recording->hook_count; i++) {
        if (!is_printed(recording, i)) {
            print_module(report, out, i);
        }
    }
}
