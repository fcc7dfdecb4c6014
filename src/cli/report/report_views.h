// SPDX-License-Identifier: MIT
// report_views: the optional views of a report, besides or instead of its sections.
//
// Each view sends one query to src/profile. Each has its own file with its text and its JSON;
// report_text.c and report_json.c have the tables of them. With a second recording, the tree and
// the functions show the change. Context: H.
#pragma once

#include <stdio.h>

#include "base/err.h"
#include "cli/report/report.h"
#include "profile/calls/call_tree.h"
#include "views_json/layout/view.h"

// The views, each in its own file. The text ends with ERR_NO_MEMORY, or ERR_INVALID for a pattern;
// the JSON is one field, or two.
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

// Shared by the views: the title; the cost that a view shows; the frames of its trees
// (--show-wrappers); the limit of its lines (0: all).
void report_view_title(const struct report *report, FILE *out, const char *title);
enum cost report_view_cost(const struct report *report);
enum call_tree_frames report_view_frames(const struct report *report);
size_t report_view_limit(const struct report *report, size_t by_default);

// Return the selection of the older recording, or NULL.
const struct selection *report_old_selection(const struct report *report);

// Print "12.5 MiB  50.0%", or with a second recording "+1.2 MiB  13.7 MiB". Of estimates the error
// follows: "12.5 MiB  ±21%", "+1.2 MiB ±310 KiB". NULL: all costs are 0.
void report_print_sides(const struct report *report,
                        FILE *out,
                        const struct costs *new,
                        const struct costs *old,
                        uint64_t whole);

// The columns that it prints.
size_t report_sides_columns(const struct report *report);

// Print a function of the union and its module, in the columns of a line after the first `used`.
// `inner`: the number of further frames that the line stands for.
void report_print_function(
    const struct report *report, FILE *out, uint32_t function, uint32_t inner, size_t used);
