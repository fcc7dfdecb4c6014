// SPDX-License-Identifier: MIT
// report: the content of `cairn report` and of the summary after a run, before text or JSON.
//
// Opens a recording, applies the filters, queries src/profile once for totals and call sites, and
// passes the answers to report_text.c, report_json.c or report_csv.c, which only write. Context: H.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "host/text/json_writer.h"
#include "profile/calls/call_sites.h"
#include "profile/findings/findings.h"
#include "profile/growth/growth.h"
#include "profile/model/code_union.h"
#include "profile/model/profile.h"
#include "profile/select/filter.h"
#include "profile/tables/cost_groups.h"
#include "profile/tables/rss_breakdown.h"
#include "profile/tables/summary.h"

// The optional views: bits of report_options.views.
enum report_view {
    REPORT_GROUPS = 1 << 0,
    REPORT_FUNCTIONS = 1 << 1,
    REPORT_CALLERS = 1 << 2,
    REPORT_TREE = 1 << 3,
    REPORT_HISTOGRAMS = 1 << 4,
};

struct comparison;

// The sections of the text report. With none of them, the report is one screen, or the section of
// `sort`.
enum report_section {
    REPORT_PEAK = 1 << 0,
    REPORT_ALLOCATIONS = 1 << 1,
    REPORT_TEMPORARY = 1 << 2,
    REPORT_LEAKED = 1 << 3,
    REPORT_RSS = 1 << 4,
    REPORT_ALL = (1 << 6) - 1, // these, and the parts around them
};

struct report_options {
    struct filter filter;
    enum cost sort;       // COST_COUNT: not given
    uint32_t sections;    // enum report_section; text only
    uint32_t site_limit;  // entries per section, 0: all
    uint32_t stack_limit; // stacks per entry, 0: all
    uint32_t depth_limit; // printed frames per stack, text only; 0: all
    bool use_full_names;  // print whole functions and paths, without a limit of columns
    bool shows_wrappers;  // print each wrapper frame of a stack, and of a tree
    bool is_data;         // JSON or CSV, not text
    bool lists_blocks;    // print blocks: instead of the report in text, inside it in JSON
    bool use_color;
    bool without_stacks; // of call sites: for what prints none of them; needs little memory
    uint32_t views;      // enum report_view; 0: the sections
    enum call_tree_direction tree;
    enum cost_group_by group_by;
    const char *callers;                 // regular expression for functions, borrowed
    const struct comparison *comparison; // borrowed; the older recording, for views; may be NULL
    bool has_limit;                      // site_limit was given, and limits views too
    unsigned width_columns;              // of the text
    struct progress *progress;           // borrowed; NULL: silent
};

// Whether the text is one screen: no view, no section and no single cost was requested.
static inline bool report_is_screen(const struct report_options *options)
{
    return options->views == 0 && options->sections == 0 && options->sort == COST_COUNT &&
           !options->is_data && !options->lists_blocks;
}

struct report {
    const struct report_options *options; // borrowed
    const struct profile *profile;        // borrowed
    struct selection selection;           // owned
    struct summary summary;               // owned
    struct call_sites sites;              // owned
    struct code_union alone;       // owned; the functions of this recording, if a view needs them
    const struct code_union *code; // `alone`, or the comparison's
    struct rss_breakdown rss_breakdown; // owned; of the selected process, if requested
    struct growth growth;               // owned; by call site, if only leaks were requested
    struct findings findings;           // owned; of the screen, the whole report and the summary
};

enum err report_build(const struct profile *profile,
                      const struct report_options *options,
                      struct report *out,
                      struct err_info *info) MUST_USE;
void report_release(struct report *report);

enum {
    REPORT_COSTS = 4 // sections at most
};

// Write the costs that order the sections. Return how many there are.
size_t report_sections(const struct report *report, enum cost out[REPORT_COSTS]);

// Return how the live bytes of a call site grew; NULL if not requested or not known.
const struct growth_entry *report_growth(const struct report *report, uint32_t site);

// Write the report. Return ERR_NO_MEMORY on failure. The caller checks the stream for output
// errors; JSON also returns ERR_IO.
enum err report_write_text(const struct report *report, FILE *out) MUST_USE;
enum err report_write_json(const struct report *report, enum json_style style, FILE *out) MUST_USE;

// Write one table as CSV: of the requested view or section, or the call sites.
enum err report_write_csv(const struct report *report, FILE *out) MUST_USE;

// Write the lists of blocks instead of the report's text. Return ERR_INVALID or ERR_UNSUPPORTED if
// there are no such lists, or none for this selection; nothing was written then.
enum err report_write_blocks(const struct report *report, FILE *out, struct err_info *info)
    MUST_USE;

// Check whether this selection has lists of blocks. Errors as of report_write_blocks.
enum err report_check_blocks(const struct report *report, struct err_info *info) MUST_USE;

// Print the finding that the kernel killed a process for lack of memory, if there is one.
void report_print_oom(const struct report *report, const char *prefix, FILE *out);

// Write the short form after a run: totals, and the top three of each section.
enum err report_write_summary(const struct report *report, FILE *out) MUST_USE;
