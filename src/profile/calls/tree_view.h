// SPDX-License-Identifier: MIT
// tree_view: a call tree for display: of one recording or of two, whole or in parts.
//
//   selection --call_tree--> (collapse) --+
//                                         +--> tree_view --> pick the nodes to show
//   selection of the old --> (collapse) --+               \-> search
//
// Nodes of two trees are merged if their paths from the root have the same functions in the code
// union.
// Invariants: on each side, as in call_tree.h (total = own + children's totals; a parent's id is
// below its children's), except that pruned nodes have no children (bottom_up_tree.h). A node's
// location is valid in the recording of its side. That side may differ from the side that names the
// function (code_union.origins). Ids depend on the selections and the spec alone. Context: H;
// read-only once built.
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
    enum call_tree_frames frames;
    bool collapses; // a function that calls itself directly is one node
    // The paths of unfolded runs of wrapper frames, with CALL_TREE_SITES: call_tree.h.
    const uint64_t *unfolded; // borrowed
    size_t unfolded_count;
};

struct tree_view {
    const struct code_union *code;       // borrowed
    struct call_tree_node_vec nodes;     // owned; `sides` names the side of a node's location
    struct flag_vec sides;               // owned; by node: enum side of its location
    struct u32_vec functions;            // owned; by node: id in the union, REC_NONE for the root
    struct tree_costs costs[SIDE_COUNT]; // owned; SIDE_OLD is empty with one recording
    struct u32_vec row_nodes; // owned; by index in the new selection: where its stack ends
    struct flag_vec pruned;   // owned; by node: 1 if its stacks are followed no further
};

// Build the tree. `old` is NULL for one recording. `code` must be of the selections' profiles.
enum err tree_view_build(const struct code_union *code,
                         const struct selection *new,
                         const struct selection *old,
                         struct tree_view_spec spec,
                         struct tree_view *out) MUST_USE;
void tree_view_release(struct tree_view *tree);

// The memory of the tree.
size_t tree_view_bytes(const struct tree_view *tree);

// The location of a node, in the recording of its side; the new recording wins if both know the
// node. `node` must be below nodes.len and not 0: the root has no location.
const struct code_location *tree_view_location(const struct tree_view *tree, uint32_t node);

// Whether the node only passes allocations on, in either recording. `node` must not be 0.
bool tree_view_is_wrapper(const struct tree_view *tree, uint32_t node);

// Remove the children of pruned nodes. One recording may have pruned a node that the other
// followed, and such children cannot be compared. For tree_view_build.
enum err tree_view_cut(struct tree_view *tree) MUST_USE;

// By what nodes of two recordings are sorted and pruned.
enum side_score {
    SCORE_LARGER,
    SCORE_CHANGE, // the absolute difference
    SCORE_NEW,
    SCORE_OLD,
};

// Combine both values into one score; `old` is 0 with one recording.
uint64_t side_score_of(enum side_score score, uint64_t new, uint64_t old);

struct tree_view_wish {
    uint32_t root;    // must be below nodes.len
    uint32_t levels;  // below the root; 0: all
    uint64_t minimum; // of the larger side's total; the root is exempt
    size_t limit;     // nodes at most; at least 1
    enum cost sort;
    enum side_score score;
    bool by_any_cost; // pick by the largest share of any cost; `sort` orders siblings
};

// Pick the nodes to show, in depth-first order from the root, siblings highest first, ties by id.
// Beyond the limit, keep the nodes with the highest totals and their parents. *is_complete is true
// if no node below the root was omitted.
enum err tree_view_pick(const struct tree_view *tree,
                        const struct tree_view_wish *wish,
                        struct u32_vec *out,
                        bool *is_complete) MUST_USE;

struct tree_matches {
    struct flag_vec flags; // owned; by node
    size_t count;
    struct costs totals; // of the new side's stacks with a match
};

// Mark the nodes whose function or module path matches.
enum err tree_view_search(const struct tree_view *tree,
                          struct pattern *pattern,
                          struct tree_matches *out,
                          struct err_info *info) MUST_USE;
void tree_matches_release(struct tree_matches *matches);
