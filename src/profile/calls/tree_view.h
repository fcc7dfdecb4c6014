// SPDX-License-Identifier: MIT
// tree_view: a call tree as the viewer shows it: of one recording or of two, whole or in parts.
//
//   selection --call_tree--> (collapse) --+
//                                         +--> tree_view --> pick the nodes to show
//   selection of the old --> (collapse) --+               \-> search
//
// Nodes of two trees are one if the functions on their way from the root are the same in the code
// union. Invariants: as those of call_tree.h for each side (total = self + children's totals; a
// parent's id is below its children's), but for pruned nodes, which have no children
// (bottom_up_tree.h); a node's location is below the number of locations of its side's recording,
// which need not be the side whose name its function has (code_union.origins); ids depend on the
// selections and the spec alone. Context: H; read-only once built.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "profile/calls/bottom_up_tree.h"
#include "profile/calls/call_tree.h"
#include "profile/model/code_union.h"
#include "profile/select/pattern.h"

struct tree_view_spec {
    enum call_tree_direction direction;
    enum call_tree_key key; // must be CALL_TREE_BY_FUNCTION with two recordings
    bool collapses;         // a function that calls itself directly is one node
};

struct tree_view {
    const struct code_union *code;     // borrowed
    struct call_tree_node_vec nodes;   // owned; a location is of the side that `sides` says
    struct flag_vec sides;             // owned; by node: the enum side whose location it has
    struct u32_vec functions;          // owned; by node: id in the union, REC_NONE for the root
    struct costs_vec self[SIDE_COUNT]; // owned; by node; of SIDE_OLD empty with one recording
    struct costs_vec total[SIDE_COUNT];
    struct u32_vec row_nodes; // owned; by index in the new selection: where its stack ends
    struct flag_vec pruned;   // owned; by node: its stacks are followed no further
};

// `old` is NULL for one recording. `code` must be of the selections' profiles.
enum err tree_view_build(const struct code_union *code,
                         const struct selection *new,
                         const struct selection *old,
                         struct tree_view_spec spec,
                         struct tree_view *out) MUST_USE;
void tree_view_release(struct tree_view *tree);

// The location of a node, in the recording that it is of. `node` must be below nodes.len and not 0,
// the root, which has none. A node that both recordings know has that of the new one.
const struct code_location *tree_view_location(const struct tree_view *tree, uint32_t node);

// Takes the children from pruned nodes: of two recordings, one may have pruned a node that the
// other followed, and then its children cannot be compared. For tree_view_build.
enum err tree_view_cut(struct tree_view *tree) MUST_USE;

// What nodes of two recordings are sorted and cut by.
enum side_score {
    SCORE_LARGER,
    SCORE_CHANGE, // its size, whatever the direction
    SCORE_NEW,
    SCORE_OLD,
};

// `new` and `old` put together; `old` is 0 with one recording.
uint64_t side_score_of(enum side_score score, uint64_t new, uint64_t old);

struct tree_view_wish {
    uint32_t root;    // must be below nodes.len
    uint32_t levels;  // below the root; 0: all
    uint64_t minimum; // the larger side's total must reach it; the root need not
    size_t limit;     // nodes at most, at least 1
    enum cost sort;
    enum side_score score;
    bool by_any_cost; // taken by the largest share of any cost; `sort` orders siblings
};

// The nodes to show, in depth-first order from the root; siblings highest first, ties by id. If
// they are more than the limit, those with the highest totals; with each node its parent.
// *is_complete says whether nothing below the root was left out.
enum err tree_view_pick(const struct tree_view *tree,
                        const struct tree_view_wish *wish,
                        struct u32_vec *out,
                        bool *is_complete) MUST_USE;

struct tree_matches {
    struct flag_vec flags; // owned; by node
    size_t count;
    struct costs totals; // of the new side's stacks that have a match
};

// Marks the nodes whose function or module's path matches.
enum err tree_view_search(const struct tree_view *tree,
                          struct pattern *pattern,
                          struct tree_matches *out,
                          struct err_info *info) MUST_USE;
void tree_matches_release(struct tree_matches *matches);
