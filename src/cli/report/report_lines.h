// SPDX-License-Identifier: MIT
// report_lines: the parts that make up the lines of the text report.
//
// Every string from the recording passes screen_text here. Output errors are found when the stream
// is closed, so results of fprintf are ignored. Context: H.
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "cli/report/report.h"
#include "cli/text/screen_text.h"
#include "host/text/format.h"
#include "host/text/strbuf.h"

enum {
    REPORT_WIDTH_UNLIMITED = 1 << 20,
    REPORT_ERROR_COLUMNS = 6, // of report_append_error
    MODULE_COLUMNS_MIN = 12,
};

// Return the escape sequence that begins a colour and the one that ends it; "" without colours.
const char *report_paint(const struct report *report, enum paint paint);
const char *report_unpaint(const struct report *report);

// Return the maximal number of columns of a line.
size_t report_width(const struct report *report);

// Return a string of the recording in `buffer`, made safe for the screen.
const char *report_string(const struct report *report, struct strbuf *buffer, rec_string id);

struct human report_format_cost(enum cost cost, uint64_t value);

// Append the error of one of `costs` as " ±12%", right-aligned; nothing if no errors of
// the recording are known, spaces if no error is known. Return its columns.
size_t report_append_error(const struct report *report,
                           struct strbuf *out,
                           enum cost cost,
                           const struct costs *costs);

// Print "1 process" or "2 processes", then `after`.
void report_print_counted(
    FILE *out, uint64_t count, const char *one, const char *many, const char *after);

// Print "  and 3 more processes" if not all of `count` were shown.
void report_print_rest(
    FILE *out, uint64_t count, uint64_t shown, const char *one, const char *many);

// Append a function's name in `columns`, with "(inlined)" if inlined. Unnamed code shows its
// address.
void report_append_function(const struct report *report,
                            struct strbuf *out,
                            uint32_t location,
                            bool is_inlined,
                            size_t columns);

// Append "file:line", "file", or nothing if unknown.
void report_append_line(const struct report *report, struct strbuf *out, uint32_t location);

// Append " in MODULE" to a place such as "file:line", or to nothing, with the words around it as
// given. The middle of a long module name is omitted, so that beginning and end are readable and
// the whole fits in `columns`, if at least MODULE_COLUMNS_MIN are left for the name.
void report_append_module(const struct report *report,
                          struct strbuf *place,
                          const char *before,
                          const char *module,
                          const char *after,
                          size_t columns);

// Return the module's name, not made safe; "" without a module.
const char *report_module(const struct report *report, uint32_t location);

// Print all frames of a stack (a node of report->sites.tree), innermost first, one per line.
void report_print_frames(const struct report *report, FILE *out, uint32_t stack);

// Print "
// TITLE
// ", marked as estimates if the recording is sampled.
void report_print_title(const struct report *report, FILE *out, const char *title);

// Print the call sites with the most `cost`, under a title.
enum err report_print_section(const struct report *report, FILE *out, enum cost cost) MUST_USE;

// If nothing was allocated, print one sentence with the reason in place of the sections and return
// true. Else print nothing and return false.
bool report_print_empty(const struct report *report, FILE *out);

// Print the findings, ranked, each with the option that shows more; nothing without findings.

void report_print_findings(const struct report *report, FILE *out);

// Print how RSS is composed: the largest parts at its peak, in a line each.
void report_print_most_of_rss(const struct report *report, FILE *out);

// Print the findings that explain the total of `cost`, or RSS for COST_COUNT.
void report_print_explanations(const struct report *report, FILE *out, enum cost cost);

// Print what follows the totals on one screen.
enum err report_print_screen(const struct report *report, FILE *out) MUST_USE;

// Print the parts of the report before and after its sections.
void report_print_header(const struct report *report, FILE *out);
void report_print_totals(const struct report *report, FILE *out);
void report_print_filter(const struct report *report, FILE *out);
enum err report_print_memory(const struct report *report, FILE *out) MUST_USE;
enum err report_print_processes(const struct report *report, FILE *out) MUST_USE;
enum err report_print_coverage(const struct report *report, FILE *out) MUST_USE;
enum err report_print_adhoc(const struct report *report, FILE *out) MUST_USE;
void report_print_marks(const struct report *report, FILE *out);
void report_print_hooks(const struct report *report, FILE *out);
void report_print_notes(const struct report *report, FILE *out);
