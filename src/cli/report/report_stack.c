// SPDX-License-Identifier: MIT
// report_stack: prints a call stack as lines of the text report.
//
//         operator new(unsigned long)  [libstdc++.so.6]
//         Cache::insert(...)           cache.cpp:42 [demo]
//         main                         main.cpp:10
//
// The function column is as wide as the longest name of this stack, or as the place column allows.
// A module is printed where it changes. Several wrapper frames in a row (wrappers.h) are one line,
// with the outermost, which the program called, and the number of the others:
//
//         std::vector<...>::push_back (+ 3 frames)
#include <string.h>

#include "base/compiler.h"
#include "base/minmax.h"
#include "cli/report/report_lines.h"
#include "cli/text/location_text.h"
#include "cli/text/screen_text.h"
#include "host/text/format.h"

enum {
    FRAME_INDENT = 8,
    PLACE_COLUMNS = 34, // at most, for "file:line [module]"
    FUNCTION_COLUMNS_MIN = 24,
};

struct stack_line {
    const struct call_tree_node *node;
    bool names_module; // the module differs from the previous line's
    size_t inner;      // further wrapper frames that this line stands for
};

// Append "file:line [module]", truncated at its start to fit the line.
static void append_place(const struct report *report, struct strbuf *out, struct stack_line line)
{
    CLEANUP(strbuf_release) struct strbuf place = {0};
    report_append_line(report, &place, line.node->location);
    const char *module = report_module(report, line.node->location);
    // The module of a pool holds only the pool, so its name is not printed twice.
    const bool is_pool =
        strcmp(profile_location_function(report->profile, line.node->location), module) == 0;
    if (line.names_module && module[0] != '\0' && !is_pool) {
        report_append_module(report, &place, place.len > 0 ? " [" : "[", module, "]",
                             PLACE_COLUMNS);
    }
    size_t columns = report->options->use_full_names ? REPORT_WIDTH_UNLIMITED : PLACE_COLUMNS;
    screen_append_cut(out, strbuf_text(&place), columns, SCREEN_CUT_START);
}

static void append_function(const struct report *report,
                            struct strbuf *out,
                            struct stack_line line,
                            size_t columns)
{
    char others[96] = "";
    int taken = 0;
    if (line.inner > 0) {
        taken = snprintf(others, sizeof(others), " (+ %s)",
                         format_things(line.inner, "frame", "frames").text); // fits
    }
    const size_t room = columns > (size_t)taken ? columns - (size_t)taken : 0;
    report_append_function(report, out, line.node->location,
                           line.node->is_inlined && line.inner == 0, room);
    strbuf_append_text(out, others);
}

static void
print_frame(const struct report *report, FILE *out, struct stack_line line, size_t function_columns)
{
    CLEANUP(strbuf_release) struct strbuf function = {0};
    CLEANUP(strbuf_release) struct strbuf place = {0};
    append_function(report, &function, line, function_columns);
    append_place(report, &place, line);
    size_t used = screen_columns(strbuf_text(&function));
    (void)fprintf(out, "%*s%s", FRAME_INDENT, "", strbuf_text(&function));
    if (place.len > 0) {
        size_t gap = !report->options->use_full_names && used < function_columns
                         ? function_columns - used
                         : 0;
        (void)fprintf(out, "%*s  %s%s%s", (int)gap, "", report_paint(report, PAINT_PLACE),
                      strbuf_text(&place), report_unpaint(report));
    }
    (void)fprintf(out, "\n");
}

DEFINE_VEC(stack_line_vec, struct stack_line);

static bool is_outside_main(const struct report *report, const struct stack_line *line)
{
    return function_is_outside_main(
        profile_location_function(report->profile, line->node->location));
}

// Whether the line of a wrapper frame also stands for the line before it.
static bool is_same_run(const struct report *report,
                        const struct stack_line_vec *lines,
                        const struct call_tree_node *node)
{
    return !report->options->shows_wrappers && lines->len > 0 &&
           profile_is_wrapper(report->profile, node->location) &&
           profile_is_wrapper(report->profile, lines->items[lines->len - 1].node->location);
}

// Collect the lines of a stack, innermost first.
static void list_frames(const struct report *report, uint32_t stack, struct stack_line_vec *out)
{
    const struct call_tree *tree = &report->sites.tree;
    const char *module = "";
    for (uint32_t at = stack; at != 0; at = tree->nodes.items[at].parent) {
        const struct call_tree_node *node = &tree->nodes.items[at];
        const char *here = report_module(report, node->location);
        struct stack_line line = {.node = node, .names_module = strcmp(here, module) != 0};
        if (is_same_run(report, out, node)) {
            struct stack_line *last = &out->items[out->len - 1];
            const bool names_module = last->names_module || line.names_module;
            *last = (struct stack_line){
                .node = node, .names_module = names_module, .inner = last->inner + 1};
        } else {
            stack_line_vec_add(out, line);
        }
        module = here;
    }
    size_t shown = out->len;
    while (shown > 0 && is_outside_main(report, &out->items[shown - 1])) {
        shown--;
    }
    if (shown > 0 && !report->options->use_full_names) {
        out->len = shown;
    }
}

// Return the width of the function column of this stack.
static size_t function_columns(const struct report *report, const struct stack_line_vec *lines)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    size_t widest_place = 0;
    size_t widest_function = 0;
    for (size_t i = 0; i < lines->len; i++) {
        strbuf_clear(&text);
        append_place(report, &text, lines->items[i]);
        size_t place = screen_columns(strbuf_text(&text));
        widest_place = max_u64(widest_place, place);
        strbuf_clear(&text);
        append_function(report, &text, lines->items[i], REPORT_WIDTH_UNLIMITED);
        size_t function = screen_columns(strbuf_text(&text));
        widest_function = max_u64(widest_function, function);
    }
    size_t taken = FRAME_INDENT + 2 + widest_place;
    size_t room = report_width(report) > taken ? report_width(report) - taken : 0;
    room = max_u64(room, FUNCTION_COLUMNS_MIN);
    return widest_function < room ? widest_function : room;
}

void report_print_frames(const struct report *report, FILE *out, uint32_t stack)
{
    CLEANUP(stack_line_vec_release) struct stack_line_vec lines = {0};
    list_frames(report, stack, &lines);
    size_t limit = report->options->depth_limit;
    bool is_cut = limit != 0 && lines.len > limit;
    size_t inner = is_cut ? limit - 1 : lines.len;
    size_t columns = function_columns(report, &lines);
    for (size_t i = 0; i < inner; i++) {
        print_frame(report, out, lines.items[i], columns);
    }
    if (is_cut) {
        (void)fprintf(out, "%*s... ", FRAME_INDENT, "");
        report_print_counted(out, lines.len - limit, "more frame", "more frames", "\n");
        struct stack_line outermost = lines.items[lines.len - 1];
        outermost.names_module = true;
        print_frame(report, out, outermost, columns);
    }
}
