// SPDX-License-Identifier: MIT
// views: the writers of all views. Each adds its fields to an object that the caller opened.
//
// docs/format/json.md describes the fields. struct view has the parameters of every view; `options`
// has those of one view. Limits of 0 mean no limit. Context: H.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "profile/calls/call_sites.h"
#include "profile/calls/stack_counts.h"
#include "profile/compare/diff_verdict.h"
#include "profile/findings/finding_changes.h"
#include "profile/growth/growth.h"
#include "profile/tables/cost_groups.h"
#include "profile/tables/histogram.h"
#include "profile/tables/rss_breakdown.h"
#include "profile/tables/summary.h"
#include "profile/time/top_series.h"
#include "views_json/layout/view.h"
#include "views_json/layout/view_table.h"

// The run: what was recorded. `view_run` writes only the field `run`.
enum err view_run(struct view *view) MUST_USE;
void view_marks(struct view *view);

// The field `selection`: the filter and the totals. `whole`: the totals without a filter, under the
// same suppressions; NULL: they are computed.
enum err view_selection(struct view *view, const struct costs *whole) MUST_USE;

// The field `key`: the totals of a selection and figures of the run.
void view_totals(struct view *view, const char *key, const struct summary *summary);

struct call_sites_options {
    const struct call_sites *sites;    // of the selection; NULL: they are built
    const struct stack_counts *counts; // of `sites` without stacks; NULL: they have them
    size_t limit;
    bool lists_stacks;
    size_t stack_limit; // of each site
};

struct summary_options {
    struct call_sites_options sites;
    const enum cost *costs; // for each cost, one list of call sites
    size_t cost_count;
    bool all_costs; // list entries have all costs of the view, else the ranking cost
};

// How the run went and what it cost: `damage`, `run`, `totals`, `top`, `health`, `counters`,
// `unrecorded`, `hooks`, `unseen`, `marks`.
enum err view_summary(struct view *view, const struct summary_options *options) MUST_USE;

// `damage`, `sampling`, `counters` and `modules`: all modules of the recording, without costs.
enum err view_health(struct view *view) MUST_USE;

// `nodes`, the tree of all call stacks, and `rows`, the costs of each stack on each thread.
void view_rows(struct view *view, const struct call_tree *tree);

// The call sites with the most of view->sort.
enum err view_call_sites(struct view *view, const struct call_sites_options *options) MUST_USE;

// One table each: `processes`, `threads`, `modules`.
enum err view_processes(struct view *view) MUST_USE;
enum err view_threads(struct view *view) MUST_USE;
enum err view_modules(struct view *view) MUST_USE;

// The selection grouped by `by`.
enum err view_groups(struct view *view, enum cost_group_by by) MUST_USE;

struct functions_options {
    enum call_tree_frames frames;
    bool by_self; // ranked by self costs, else by inclusive ones
    size_t limit;
};

enum err view_functions(struct view *view, const struct functions_options *options) MUST_USE;

// A function with its callers, callees and lines.
struct function_trees;
enum err view_function_detail(struct view *view,
                              const struct function_trees *trees,
                              uint32_t function) MUST_USE;

// All calls between functions, and the costs of each location and source line.
enum err view_call_graph(struct view *view, enum call_tree_frames frames, size_t limit) MUST_USE;

struct tree_options {
    const struct tree_view *tree;
    struct tree_view_spec spec;         // of the tree
    struct tree_view_wish wish;         // which nodes to write
    const struct tree_matches *matches; // of a search; NULL: no search
};

enum err view_tree(struct view *view, const struct tree_options *options) MUST_USE;

// Whole call stacks.
struct stacks_options {
    const struct flag_vec *rows; // rows of the selection to include; NULL: all
    size_t first;
    size_t limit;
};

enum err view_stacks(struct view *view, const struct stacks_options *options) MUST_USE;

// The call stacks of two recordings, matched by function. `tree` is of both.
void view_stack_pairs(struct view *view,
                      const struct tree_view *tree,
                      const struct stacks_options *options);

// Whether any frame is in this source file. view_source_lines writes the table `lines`: the costs
// of each line.
bool view_source_is_named(const struct view *view, const char *path);
enum err view_source_lines(struct view *view, const char *path) MUST_USE;

struct series_options {
    enum series_value value;
    const char *value_name;
    enum row_group_by by;
    size_t top_count;
};

struct points_options {
    const struct timeline_point_vec *points;
    uint64_t slice_ms;
    uint64_t known; // bits of enum cost; unknown figures are null
};

// The table `points`: the time slices of the run.
void view_points(struct view *view, const struct points_options *options);

enum err view_series(struct view *view, const struct series_options *options) MUST_USE;

struct histogram_options {
    enum histogram_of of;
    bool by_bytes; // ranks call sites by bytes, else by count
    size_t top_count;
};

enum err view_histogram(struct view *view, const struct histogram_options *options) MUST_USE;

// Freed blocks by size and lifetime.
enum err view_size_lifetime(struct view *view) MUST_USE;

struct leaks_options {
    const struct growth *growth; // of the selection, by `by`; NULL: it is built
    enum row_group_by by;
    bool has_class; // only entries of `class`
    enum growth_class class;
    size_t limit;
};

// The memory that is live at the end, and its growth.
enum err view_leaks(struct view *view, const struct leaks_options *options) MUST_USE;

// The table `suppressions`: every rule and what it suppressed.
void view_suppressions(struct view *view);

// The parts of resident memory: samples, and breakdowns by kind. `details`, by breakdown of the
// rss_breakdown, selects the breakdowns that list their mappings.
enum err view_rss(struct view *view,
                  const struct rss_breakdown *rss_breakdown,
                  const struct flag_vec *details) MUST_USE;

// Events that the program reported, heaviest first.
enum err view_adhoc(struct view *view, size_t limit) MUST_USE;

struct blocks_options {
    bool lists_blocks; // else the tables are empty
    size_t limit;
};

// The blocks live at the end (`end`) and at the peak (`peak`). The recording must list blocks, and
// block_table_build must accept the filter.
enum err view_blocks(struct view *view, const struct blocks_options *options) MUST_USE;

struct diff_view_options {
    const struct diff *diff;
    const struct diff_finding_vec *findings;
    const struct finding_changes *finding_changes;
    const enum cost *costs; // the judged costs
    size_t cost_count;
    double threshold; // a ratio
    size_t limit;     // functions for each cost
    size_t stack_limit;
};

// What deserves attention, as ranked sentences with figures: the table `items`; and the object
// `peak_rise`: what call sites gained before the peak. The figures are of the selection.
enum err view_findings(struct view *view, const struct summary *summary) MUST_USE;

// What became of each finding, as the table `key`. The second builds the changes, and writes null
// without an old selection.
void view_finding_changes(struct view *view,
                          const char *key,
                          const struct finding_changes *changes);
enum err view_findings_compared(struct view *view, const char *key) MUST_USE;

// The changes from the old recording to the new one, and the findings among them.
enum err view_diff(struct view *view, const struct diff_view_options *options) MUST_USE;

// Whether a cost grew from the old selection to the new one, as a sentence; null without an old
// selection.
enum err view_verdict(struct view *view) MUST_USE;
