// SPDX-License-Identifier: MIT
// keyed_costs: see keyed_costs.h.
//
// It walks in depth-first order without recursion, by the nodes' own links. `open` counts the nodes
// of each key between the root and the current node.
#include "profile/tables/keyed_costs.h"

#include "base/compiler.h"
#include "profile/calls/call_sites.h"

struct walk {
    const struct call_tree *tree;
    const struct u32_vec *keys;
    struct u32_vec open;   // by key
    struct costs_vec both; // by key: costs that are self and inclusive ones
    struct keyed_costs *out;
};

static void walk_release(struct walk *walk)
{
    u32_vec_release(&walk->open);
    costs_vec_release(&walk->both);
}

static void enter_node(struct walk *walk, uint32_t node)
{
    const struct tree_costs *costs = &walk->tree->costs;
    const uint32_t key = walk->keys->items[node];
    if (key == REC_NONE) {
        return;
    }
    const struct costs *total = tree_costs_total(costs, node);
    const struct costs *self = tree_costs_self(costs, node);
    const bool is_outermost = walk->open.items[key]++ == 0;
    if (is_outermost && self == total) { // most nodes of a large tree
        costs_add(&walk->both.items[key], total);
        return;
    }
    if (is_outermost) {
        costs_add(&walk->out->inclusive.items[key], total);
    }
    if (!tree_costs_has_no_own(costs, node)) {
        costs_add(&walk->out->self.items[key], self);
    }
}

static void leave_node(struct walk *walk, uint32_t node)
{
    uint32_t key = walk->keys->items[node];
    if (key != REC_NONE) {
        walk->open.items[key]--;
    }
}

static void walk_tree(struct walk *walk)
{
    const struct call_tree_node *nodes = walk->tree->nodes.items;
    uint32_t at = 0;
    enter_node(walk, at);
    while (at != REC_NONE) {
        if (nodes[at].first_child != REC_NONE) {
            at = nodes[at].first_child;
            enter_node(walk, at);
            continue;
        }
        while (at != REC_NONE && nodes[at].next_sibling == REC_NONE) {
            leave_node(walk, at);
            at = nodes[at].parent;
        }
        if (at != REC_NONE) {
            leave_node(walk, at);
            at = nodes[at].next_sibling;
            enter_node(walk, at);
        }
    }
}

enum err keyed_costs_build(const struct call_tree *tree,
                           const struct u32_vec *keys,
                           size_t key_count,
                           struct keyed_costs *out)
{
    CLEANUP(keyed_costs_release) struct keyed_costs costs = {0};
    TRY(costs_vec_resize(&costs.self, key_count));
    TRY(costs_vec_resize(&costs.inclusive, key_count));
    CLEANUP(walk_release) struct walk walk = {.tree = tree, .keys = keys, .out = &costs};
    TRY(u32_vec_resize(&walk.open, key_count));
    TRY(costs_vec_resize(&walk.both, key_count));
    walk_tree(&walk);
    for (size_t key = 0; key < key_count; key++) {
        costs_add(&costs.self.items[key], &walk.both.items[key]);
        costs_add(&costs.inclusive.items[key], &walk.both.items[key]);
    }
    *out = TAKE(costs);
    return ERR_OK;
}

enum err keyed_costs_take_sites(const struct selection *selection,
                                const struct u32_vec *keys,
                                struct keyed_costs *costs)
{
    CLEANUP(costs_vec_release) struct costs_vec self = {0};
    CLEANUP(call_sites_release) struct call_sites sites = {0};
    TRY(costs_vec_resize(&self, costs->self.len));
    TRY(call_sites_build_alone(selection, &sites));
    for (size_t i = 0; i < sites.sites.len; i++) {
        const uint32_t location = sites.sites.items[i].location;
        const uint32_t key = location != REC_NONE ? keys->items[location] : REC_NONE;
        if (key != REC_NONE) {
            costs_add(&self.items[key], &sites.sites.items[i].costs);
        }
    }
    costs_vec_release(&costs->self);
    costs->self = TAKE(self);
    return ERR_OK;
}

void keyed_costs_release(struct keyed_costs *costs)
{
    costs_vec_release(&costs->self);
    costs_vec_release(&costs->inclusive);
}
