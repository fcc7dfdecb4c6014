// SPDX-License-Identifier: MIT
// view_rows: the whole profile: all call stacks as a tree, and the costs of each stack on each
// thread.
//
// A stack is the node of the tree where it ends. A parent precedes its children. All rows add up to
// the selection.
#include "base/compiler.h"
#include "views_json/views/views.h"

struct node_row {
    uint32_t parent; // REC_NONE for the root
    struct place place;
    bool inlined;
};

DEFINE_VEC(node_row_vec, struct node_row);

static const struct column node_columns[] = {
    COLUMN(CELL_POSITION, node_row, parent),
    COLUMN(CELL_LOCATION, node_row, place),
    COLUMN(CELL_BOOL, node_row, inlined),
};

static void write_nodes(struct view *view, const struct call_tree *tree)
{
    CLEANUP(node_row_vec_release) struct node_row_vec rows = {0};
    for (size_t i = 0; i < tree->nodes.len; i++) {
        const struct call_tree_node *node = &tree->nodes.items[i];
        const struct node_row row = {
            .parent = i > 0 ? node->parent : REC_NONE,
            .place = {SIDE_NEW, i > 0 ? node->location : REC_NONE},
            .inlined = node->is_inlined,
        };
        node_row_vec_add(&rows, row);
    }
    view_table(view, &TABLE("nodes", node_columns, rows.items, rows.len));
}

struct cost_row {
    uint32_t thread; // its number in the recording
    uint32_t node;
    struct costs costs;
};

DEFINE_VEC(cost_row_vec, struct cost_row);

static const struct column row_columns[] = {
    COLUMN(CELL_U32, cost_row, thread),
    COLUMN(CELL_U32, cost_row, node),
    COLUMN(CELL_COSTS, cost_row, costs),
    COLUMN_ERRORS("errors", CELL_ERRORS, cost_row, costs),
};

void view_rows(struct view *view, const struct call_tree *tree)
{
    const struct selection *selection = view->selection;
    CLEANUP(cost_row_vec_release) struct cost_row_vec rows = {0};
    write_nodes(view, tree);
    for (size_t i = 0; i < selection->rows.len; i++) {
        const struct rec_row *row = &view->profile->recording.rows[selection->rows.items[i]];
        const struct cost_row cost_row = {.thread = row->thread,
                                          .node = tree->row_nodes.items[i],
                                          .costs = selection_costs(selection, i)};
        cost_row_vec_add(&rows, cost_row);
    }
    view_table(view, &TABLE("rows", row_columns, rows.items, rows.len));
}
