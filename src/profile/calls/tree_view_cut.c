// SPDX-License-Identifier: MIT
// tree_view_cut: removes the children of pruned nodes. See tree_view.h.
//
// Nodes move towards the front of their arrays, parents before children, so one pass suffices.
// Totals do not change: those of the remaining nodes include what was removed.
#include "base/compiler.h"
#include "profile/calls/tree_view.h"

// Move node `from` to `to`, which is not above it, below its parent's new place.
static void
move_node(struct tree_view *tree, uint32_t from, uint32_t to, const struct u32_vec *places)
{
    struct call_tree_node node = tree->nodes.items[from];
    node.first_child = REC_NONE;
    node.next_sibling = REC_NONE;
    if (node.parent != REC_NONE) {
        node.parent = places->items[node.parent];
        node.next_sibling = tree->nodes.items[node.parent].first_child;
        tree->nodes.items[node.parent].first_child = to;
    }
    tree->nodes.items[to] = node;
    tree->sides.items[to] = tree->sides.items[from];
    tree->functions.items[to] = tree->functions.items[from];
    tree->pruned.items[to] = tree->pruned.items[from];
    for (size_t side = 0; side < SIDE_COUNT; side++) {
        struct tree_costs *costs = &tree->costs[side];
        costs->totals.items[to] = costs->totals.items[from];
        costs->own_of.items[to] = costs->own_of.items[from];
    }
}

static bool has_pruned(const struct tree_view *tree)
{
    for (size_t i = 0; i < tree->pruned.len; i++) {
        if (tree->pruned.items[i] != 0) {
            return true;
        }
    }
    return false;
}

static void shorten_tree(struct tree_view *tree, size_t len)
{
    tree->nodes.len = len;
    tree->sides.len = len;
    tree->functions.len = len;
    tree->pruned.len = len;
    for (size_t side = 0; side < SIDE_COUNT; side++) {
        tree_costs_shorten(&tree->costs[side], len);
    }
}

enum err tree_view_cut(struct tree_view *tree)
{
    CLEANUP(u32_vec_release) struct u32_vec places = {0}; // new place: its own, or an ancestor's
    CLEANUP(flag_vec_release) struct flag_vec is_cut = {0};
    uint32_t kept = 0;
    if (!has_pruned(tree)) {
        return ERR_OK;
    }
    TRY(u32_vec_resize(&places, tree->nodes.len));
    TRY(flag_vec_resize(&is_cut, tree->nodes.len));
    for (uint32_t i = 0; i < tree->nodes.len; i++) {
        uint32_t parent = tree->nodes.items[i].parent;
        // The parent and its flag have already moved.
        is_cut.items[i] = parent != REC_NONE && (is_cut.items[parent] != 0 ||
                                                 tree->pruned.items[places.items[parent]] != 0);
        if (is_cut.items[i] != 0) {
            places.items[i] = places.items[parent];
        } else {
            places.items[i] = kept;
            move_node(tree, i, kept++, &places);
        }
    }
    shorten_tree(tree, kept);
    for (size_t i = 0; i < tree->row_nodes.len; i++) {
        tree->row_nodes.items[i] = places.items[tree->row_nodes.items[i]];
    }
    return ERR_OK;
}
