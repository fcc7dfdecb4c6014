// SPDX-License-Identifier: MIT
// report_tree: prints call stacks as a tree, top-down or bottom-up.
//
//    57.2 MiB   100%  main  [server]
//    57.2 MiB   100%   load
//    40.0 MiB  69.9%    strdup  [libc.so.6]
//
// Each level moves a line right by one column, up to half of the width. Deeper lines print their
// level. Nodes below half a percent are pruned, as are nodes beyond the limit.
#include <string.h>

#include "base/compiler.h"
#include "cli/report/report_lines.h"
#include "cli/report/report_views.h"
#include "profile/calls/tree_view.h"
#include "views_json/views/views.h"

enum {
    NODES_BY_DEFAULT = 60,
    SHARE_SHOWN = 200, // minimum: one 200th of the total
    INDENT_MAX = 32,
};

static struct tree_view_spec spec_of(const struct report *report)
{
    return (struct tree_view_spec){.direction = report->options->tree,
                                   .key = CALL_TREE_BY_FUNCTION,
                                   .frames = report_view_frames(report)};
}

static MUST_USE enum err build_tree(const struct report *report, struct tree_view *out)
{
    return tree_view_build(report->code, &report->selection, report_old_selection(report),
                           spec_of(report), out);
}

static uint64_t
total_of(const struct tree_view *tree, enum side side, uint32_t node, enum cost cost)
{
    return tree->costs[side].totals.len > 0
               ? costs_get(tree_costs_total(&tree->costs[side], node), cost)
               : 0;
}

static struct tree_view_wish wish_of(const struct report *report, const struct tree_view *tree)
{
    enum cost cost = report_view_cost(report);
    uint64_t new = total_of(tree, SIDE_NEW, 0, cost);
    uint64_t old = total_of(tree, SIDE_OLD, 0, cost);
    size_t limit = report_view_limit(report, NODES_BY_DEFAULT);
    return (struct tree_view_wish){
        .levels = report->options->depth_limit,
        .minimum = limit == 0 ? 1 : (new > old ? new : old) / SHARE_SHOWN + 1,
        .limit = limit == 0 ? SIZE_MAX : limit + 1, // and the root
        .sort = cost,
        .score = SCORE_LARGER,
    };
}

static void
print_node(const struct report *report, FILE *out, const struct tree_view *tree, uint32_t node)
{
    enum cost cost = report_view_cost(report);
    size_t used = 2 + report_sides_columns(report);
    uint32_t depth = tree->nodes.items[node].depth - 1;
    (void)fputs("  ", out);
    const struct costs *old = tree->costs[SIDE_OLD].totals.len > 0
                                  ? tree_costs_total(&tree->costs[SIDE_OLD], node)
                                  : NULL;
    report_print_sides(report, out, tree_costs_total(&tree->costs[SIDE_NEW], node), old,
                       total_of(tree, SIDE_NEW, 0, cost));
    if (depth <= INDENT_MAX) {
        (void)fprintf(out, "%*s", (int)depth, "");
        used += depth;
    } else {
        char level[16];
        (void)snprintf(level, sizeof(level), "(%u) ", depth + 1); // fits
        (void)fprintf(out, "%*s%s", INDENT_MAX, "", level);
        used += INDENT_MAX + strlen(level);
    }
    // A node that is not a wrapper hides what the allocation passed through. Every call site does.
    const bool is_run = tree_view_is_wrapper(tree, node) && tree->nodes.items[node].hidden > 0;
    report_print_function(report, out, tree->functions.items[node],
                          is_run ? tree->nodes.items[node].hidden : 0, used);
}

// Count the nodes of a tree that have some of the cost, on either side.
static uint64_t count_nodes(const struct tree_view *tree, enum cost cost)
{
    uint64_t count = 0;
    for (uint32_t node = 0; node < tree->nodes.len; node++) {
        count +=
            total_of(tree, SIDE_NEW, node, cost) > 0 || total_of(tree, SIDE_OLD, node, cost) > 0;
    }
    return count;
}

enum err report_tree_text(const struct report *report, FILE *out)
{
    CLEANUP(tree_view_release) struct tree_view tree = {0};
    CLEANUP(u32_vec_release) struct u32_vec nodes = {0};
    bool is_complete;
    char title[96];
    bool is_top_down = report->options->tree == CALL_TREE_TOP_DOWN;
    (void)snprintf(title, sizeof(title), "TREE, %s: %s",
                   is_top_down ? "from the threads inwards" : "from the call sites outwards",
                   profile_cost_info(report->profile, report_view_cost(report)).phrase); // fits
    TRY(build_tree(report, &tree));
    const struct tree_view_wish wish = wish_of(report, &tree);
    TRY(tree_view_pick(&tree, &wish, &nodes, &is_complete));
    report_view_title(report, out, title);
    for (size_t i = 1; i < nodes.len; i++) {
        print_node(report, out, &tree, nodes.items[i]);
    }
    if (nodes.len == 1) {
        (void)fputs("     nothing\n", out);
    }
    const uint64_t all = is_complete ? 0 : count_nodes(&tree, wish.sort);
    if (all > nodes.len) {
        (void)fputs("  and ", out);
        report_print_counted(out, all - nodes.len, "smaller", "smaller",
                             "; -n 0 --max-depth 0 shows all\n");
    }
    return ERR_OK;
}

enum err report_tree_json(const struct report *report, struct view *view)
{
    CLEANUP(tree_view_release) struct tree_view tree = {0};
    TRY(build_tree(report, &tree));
    const struct tree_options options = {
        .tree = &tree, .spec = spec_of(report), .wish = wish_of(report, &tree)};
    VIEW_OBJECT(view, "tree", view_tree(view, &options));
    return ERR_OK;
}
