// SPDX-License-Identifier: MIT
// report_views: what a report shows on request, besides or instead of its sections.
//
// Each view asks src/profile one question and has a file of its own, with its text and its JSON;
// report_views.c has the table of them. With a second recording, the tree and the functions show
// the change from it. Context: H.
#pragma once

#include <stdio.h>

#include "base/err.h"
#include "cli/report/report.h"
#include "views_json/layout/view.h"

// The text of every view that was asked for. ERR_NO_MEMORY, or ERR_INVALID for a pattern.
enum err report_views_write_text(const struct report *report, FILE *out) MUST_USE;

// A field for each view, null if it was not asked for.
enum err report_views_write_json(const struct report *report, struct view *view) MUST_USE;

// The views, each in its own file.
enum err report_tree_text(const struct report *report, FILE *out) MUST_USE;
enum err report_tree_json(const struct report *report, struct view *view) MUST_USE;
enum err report_functions_text(const struct report *report, FILE *out) MUST_USE;
enum err report_functions_json(const struct report *report, struct view *view) MUST_USE;
enum err report_callers_text(const struct report *report, FILE *out) MUST_USE;
enum err report_callers_json(const struct report *report, struct view *view) MUST_USE;
enum err report_histograms_text(const struct report *report, FILE *out) MUST_USE;
enum err report_histograms_json(const struct report *report, struct view *view) MUST_USE;
enum err report_groups_text(const struct report *report, FILE *out) MUST_USE;
enum err report_groups_json(const struct report *report, struct view *view) MUST_USE;

// For them: the title of a view; the cost that it is about; how many lines it may have (0: all).
void report_view_title(const struct report *report, FILE *out, const char *title);
enum cost report_view_cost(const struct report *report);
size_t report_view_limit(const struct report *report, size_t by_default);

// The other recording's selection, NULL if there is none.
const struct selection *report_old_selection(const struct report *report);

// "12.5 MiB  50.0%", or with a second recording "+1.2 MiB  13.7 MiB": 19 and 22 columns.
void report_print_sides(
    const struct report *report, FILE *out, uint64_t new, uint64_t old, uint64_t whole);

// A function of the union, with its module, in what is left of a line after `used` columns.
void report_print_function(const struct report *report, FILE *out, uint32_t function, size_t used);
