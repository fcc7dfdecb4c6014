// SPDX-License-Identifier: MIT
// view_stacks: whole call stacks, of one recording or two.
//
// For one recording, stacks are the nodes with costs of their own in a tree by location. For two,
// they are nodes of the common tree by function, so lines and addresses have no effect. A stack of
// only one recording has costs of 0 in the other.
#include "base/compiler.h"
#include "base/order.h"
#include "profile/calls/call_tree.h"
#include "views_json/views/views.h"

struct found_stack {
    uint32_t node;
    uint64_t score;
};

DEFINE_VEC(found_stack_vec, struct found_stack);

static int compare_stacks(const void *left, const void *right)
{
    const struct found_stack *a = left;
    const struct found_stack *b = right;
    return order_u64(b->score, a->score) ?: order_u64(a->node, b->node);
}

// Find the stacks of the marked rows (NULL: all rows) with any of `sort`, highest first. `self` is
// by node.
static MUST_USE enum err find_stacks(const struct view *view,
                                     const struct call_tree *tree,
                                     const struct flag_vec *rows,
                                     struct costs_vec *self,
                                     struct found_stack_vec *out)
{
    TRY(costs_vec_resize(self, tree->nodes.len));
    for (size_t i = 0; i < view->selection->rows.len; i++) {
        if (rows == NULL || rows->items[i] != 0) {
            struct costs costs = selection_costs(view->selection, i);
            costs_add(&self->items[tree->row_nodes.items[i]], &costs);
        }
    }
    for (uint32_t node = 0; node < self->len; node++) {
        uint64_t score = costs_get(&self->items[node], view->sort);
        if (score > 0) {
            TRY(found_stack_vec_push(out, (struct found_stack){node, score}));
        }
    }
    found_stack_vec_sort(out, compare_stacks);
    return ERR_OK;
}

struct stack_row {
    const struct costs *costs;
    const struct costs *old_costs;
    struct frame_list frames;
    uint32_t site_frame; // of a pair: index of the call site's frame
    uint64_t frame_first;
    uint32_t frame_count;
};

DEFINE_VEC(stack_row_vec, struct stack_row);

static const struct column stack_columns[] = {
    COLUMN(CELL_COSTS_AT, stack_row, costs),
    COLUMN_ERRORS("errors", CELL_ERRORS_AT, stack_row, costs),
    COLUMN(CELL_FRAMES, stack_row, frames),
};

enum err view_stacks(struct view *view, const struct stacks_options *options)
{
    CLEANUP(call_sites_release) struct call_sites sites = {0};
    CLEANUP(costs_vec_release) struct costs_vec self = {0};
    CLEANUP(found_stack_vec_release) struct found_stack_vec found = {0};
    CLEANUP(stack_row_vec_release) struct stack_row_vec rows = {0};
    TRY(call_sites_build(view->selection, &sites)); // of a whole recording it is kept
    TRY(find_stacks(view, &sites.tree, options->rows, &self, &found));
    for (size_t i = options->first; i < found.len && i - options->first < options->limit; i++) {
        const uint32_t node = found.items[i].node;
        const struct stack_row row = {.costs = &self.items[node],
                                      .frames = {.tree = &sites.tree, .node = node}};
        TRY(stack_row_vec_push(&rows, row));
    }
    json_key_u64(view->w, "total_count", found.len);
    view_table(view, &TABLE("stacks", stack_columns, rows.items, rows.len));
    return ERR_OK;
}

// Two recordings

// Find the stacks with any of `sort` on either side, highest score first.
static void
find_pairs(const struct view *view, const struct tree_view *tree, struct found_stack_vec *out)
{
    for (uint32_t node = 0; node < tree->nodes.len; node++) {
        uint64_t new = costs_get(tree_costs_self(&tree->costs[SIDE_NEW], node), view->sort);
        uint64_t old = costs_get(tree_costs_self(&tree->costs[SIDE_OLD], node), view->sort);
        if (new > 0 || old > 0) {
            const struct found_stack pair = {node, side_score_of(view->score, new, old)};
            found_stack_vec_add(out, pair);
        }
    }
    found_stack_vec_sort(out, compare_stacks);
}

// Count the wrapper frames before the call site's frame, innermost first.
static uint32_t count_wrapper_frames(const struct tree_view *tree, uint32_t node)
{
    uint32_t count = 0;
    for (; node != 0; node = tree->nodes.items[node].parent) {
        if (!tree_view_is_wrapper(tree, node)) {
            return count;
        }
        count++;
    }
    return 0; // all frames are wrappers
}

// Frames are identified by function alone.
struct pair_frame {
    uint32_t function;
    bool inlined;
};

DEFINE_VEC(pair_frame_vec, struct pair_frame);

static const struct column pair_frame_columns[] = {
    COLUMN(CELL_FUNCTION, pair_frame, function),
    COLUMN(CELL_BOOL, pair_frame, inlined),
};

static const struct column pair_columns[] = {
    COLUMN(CELL_COSTS_AT, stack_row, costs),
    COLUMN_WHEN(WHEN_COMPARED, CELL_COSTS_AT, stack_row, old_costs),
    COLUMN_ERRORS("errors", CELL_ERRORS_AT, stack_row, costs),
    COLUMN_OLD_ERRORS("old_errors", CELL_ERRORS_AT, stack_row, old_costs),
    COLUMN(CELL_U64, stack_row, frame_first),
    COLUMN(CELL_U32, stack_row, frame_count),
    COLUMN(CELL_U32, stack_row, site_frame),
};

static void add_pair_frames(const struct tree_view *tree, uint32_t node, struct pair_frame_vec *out)
{
    for (; node != 0; node = tree->nodes.items[node].parent) {
        const struct pair_frame frame = {.function = tree->functions.items[node],
                                         .inlined = tree->nodes.items[node].is_inlined};
        pair_frame_vec_add(out, frame);
    }
}

void view_stack_pairs(struct view *view,
                      const struct tree_view *tree,
                      const struct stacks_options *options)
{
    CLEANUP(found_stack_vec_release) struct found_stack_vec pairs = {0};
    CLEANUP(stack_row_vec_release) struct stack_row_vec rows = {0};
    CLEANUP(pair_frame_vec_release) struct pair_frame_vec frames = {0};
    find_pairs(view, tree, &pairs);
    for (size_t i = options->first; i < pairs.len && i - options->first < options->limit; i++) {
        uint32_t node = pairs.items[i].node;
        const struct stack_row row = {.costs = tree_costs_self(&tree->costs[SIDE_NEW], node),
                                      .old_costs = tree_costs_self(&tree->costs[SIDE_OLD], node),
                                      .site_frame = count_wrapper_frames(tree, node),
                                      .frame_first = frames.len,
                                      .frame_count = tree->nodes.items[node].depth};
        stack_row_vec_add(&rows, row);
        add_pair_frames(tree, node, &frames);
    }
    json_key_u64(view->w, "total_count", pairs.len);
    view_table(view, &TABLE("stacks", pair_columns, rows.items, rows.len));
    view_table(view, &TABLE("frames", pair_frame_columns, frames.items, frames.len));
}
