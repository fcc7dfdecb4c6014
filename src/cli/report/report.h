// SPDX-License-Identifier: MIT
// report: what `cairn report` and the summary after a run say, before it becomes text or JSON.
//
// Opens a recording, applies the filters, asks src/profile for totals and call sites once, and
// hands the answers to report_text.c or report_json.c, which only write. Context: H.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "host/text/json_writer.h"
#include "profile/calls/call_sites.h"
#include "profile/model/code_union.h"
#include "profile/model/profile.h"
#include "profile/select/filter.h"
#include "profile/tables/cost_groups.h"
#include "profile/tables/rss_breakdown.h"
#include "profile/tables/summary.h"
#include "profile/time/growth.h"

// What is shown on request: bits of report_options.views.
enum report_view {
    REPORT_GROUPS = 1 << 0,
    REPORT_FUNCTIONS = 1 << 1,
    REPORT_CALLERS = 1 << 2,
    REPORT_TREE = 1 << 3,
    REPORT_HISTOGRAMS = 1 << 4,
};

struct comparison;

struct report_options {
    struct filter filter;
    enum cost sort;       // COST_COUNT: the usual sections
    uint32_t site_limit;  // entries a section, 0: all
    uint32_t stack_limit; // stacks an entry, 0: all
    uint32_t depth_limit; // frames shown of a stack in text, 0: all
    bool use_full_names;  // neither functions nor paths are shortened or lines kept to a width
    bool lists_blocks;    // single blocks: instead of the report in text, within it in JSON
    bool use_color;
    bool without_stacks; // sites alone, for the short form: takes hardly any memory
    uint32_t views;      // enum report_view; 0: the sections
    enum call_tree_direction tree;
    enum cost_group_by group_by;
    const char *callers;                 // regular expression of the functions, borrowed
    const struct comparison *comparison; // borrowed; with an older recording, for views; NULL: none
    bool has_limit;                      // site_limit was asked for, and is that of views, too
    unsigned width_columns;              // of the text
    struct progress *progress;           // borrowed; NULL: silent
};

struct report {
    const struct report_options *options; // borrowed
    const struct profile *profile;        // borrowed
    struct selection selection;           // owned
    struct summary summary;               // owned
    struct call_sites sites;              // owned
    struct code_union alone;              // owned; of this recording, if a view needs it
    const struct code_union *code;        // `alone`, or the comparison's
    struct rss_breakdown rss_breakdown;   // owned; of the process, if one was asked for
    struct growth growth;                 // owned; by call site, if leaks alone were asked for
};

enum err report_build(const struct profile *profile,
                      const struct report_options *options,
                      struct report *out,
                      struct err_info *info) MUST_USE;
void report_release(struct report *report);

// The costs by which to list call sites, in order; returns how many.
size_t report_sections(const struct report *report, const enum cost **out);

// How what is alive of a call site grew; NULL if that was not asked for or cannot be told.
const struct growth_entry *report_growth(const struct report *report, uint32_t site);

// Writes the report. ERR_NO_MEMORY; an error of the stream is left in it, and JSON also says
// ERR_IO.
enum err report_write_text(const struct report *report, FILE *out) MUST_USE;
enum err report_write_json(const struct report *report, enum json_style style, FILE *out) MUST_USE;

// The lists of single blocks in place of the report's text. ERR_INVALID, ERR_UNSUPPORTED: there are
// none, or not of such a selection; then nothing was written.
enum err report_write_blocks(const struct report *report, FILE *out, struct err_info *info)
    MUST_USE;

// The short form after a run: figures, and the top three of each section.
enum err report_write_summary(const struct report *report, FILE *out) MUST_USE;
