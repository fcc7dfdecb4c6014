// SPDX-License-Identifier: MIT
// report_hooks: the text report's section on the functions that cairn's agent hooked, by module.
// See report_lines.h.

#include "base/compiler.h"
#include "cli/report/report_lines.h"
#include "cli/report/report_views.h"
#include "cli/text/screen_text.h"

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
