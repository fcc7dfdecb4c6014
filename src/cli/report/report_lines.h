// SPDX-License-Identifier: MIT
// report_lines: the pieces from which the lines of the text report are made.
//
// Everything from the recording goes through screen_text here. Output errors are found when the
// stream is closed, so nobody looks at fprintf's results.
// Context: H.
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "cli/report/report.h"
#include "cli/text/paint.h"
#include "host/text/format.h"
#include "host/text/strbuf.h"

enum {
    REPORT_WIDTH_UNLIMITED = 1 << 20
};

// The escape sequence that begins a colour and the one that ends it; "" if the report has none.
const char *report_paint(const struct report *report, enum paint paint);
const char *report_unpaint(const struct report *report);

// Columns that a line may take.
size_t report_width(const struct report *report);

// A string of the recording, made safe, in `buffer`.
const char *report_string(const struct report *report, struct strbuf *buffer, rec_string id);

struct human report_format_cost(enum cost cost, uint64_t value);

// "1 process", "2 processes", then `after`.
void report_print_counted(
    FILE *out, uint64_t count, const char *one, const char *many, const char *after);

// A function's name in `columns`, with "(inlined)" if it is; what has no name shows its address.
void report_append_function(const struct report *report,
                            struct strbuf *out,
                            uint32_t location,
                            bool is_inlined,
                            size_t columns);

// "file:line", "file", or nothing if it is not known.
void report_append_line(const struct report *report, struct strbuf *out, uint32_t location);

// The module's name as it came, not made safe; "" if there is none.
const char *report_module(const struct report *report, uint32_t location);

// All frames of a stack (a node of report->sites.tree), innermost first, a line each.
enum err report_print_frames(const struct report *report, FILE *out, uint32_t stack) MUST_USE;

// "\nTITLE\n", marked as a heading of estimates if the recording is sampled.
void report_print_title(const struct report *report, FILE *out, const char *title);

// The call sites with most of `cost`, under a title.
enum err report_print_section(const struct report *report, FILE *out, enum cost cost) MUST_USE;

// One sentence instead of all sections: that nothing was allocated, and why it may be so. False:
// there is something, and nothing was printed.
bool report_print_empty(const struct report *report, FILE *out);

// The parts of the report above and below its sections.
void report_print_header(const struct report *report, FILE *out);
void report_print_totals(const struct report *report, FILE *out);
void report_print_filter(const struct report *report, FILE *out);
enum err report_print_memory(const struct report *report, FILE *out) MUST_USE;
enum err report_print_processes(const struct report *report, FILE *out) MUST_USE;
enum err report_print_coverage(const struct report *report, FILE *out) MUST_USE;
enum err report_print_adhoc(const struct report *report, FILE *out) MUST_USE;
void report_print_marks(const struct report *report, FILE *out);
void report_print_notes(const struct report *report, FILE *out);
