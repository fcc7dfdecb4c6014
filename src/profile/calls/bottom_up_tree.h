// SPDX-License-Identifier: MIT
// bottom_up_tree: the selected stacks as a tree of bounded size, from the allocating functions
// outwards.
//
// Stacks that diverge near the allocation give nearly every stack a branch of its own. The whole
// tree then has as many nodes as all stacks have frames: too many for a large recording. So the
// builder follows stacks outwards level by level, and extends a node only if it has a share of some
// cost. The other nodes are *pruned*: their totals are right and their stacks are known
// (row_nodes), but they have no children. A tree below the bound is never pruned.
// Invariants: as in call_tree.h, except that pruned nodes have total >= own costs and no children.
// Context: H.
#pragma once

#include "base/err.h"
#include "profile/calls/call_tree.h"

struct bottom_up_tree {
    struct call_tree tree;  // owned
    struct flag_vec pruned; // owned; by node
};

struct bottom_up_bounds {
    uint64_t whole_frames; // if all stacks have at most so many frames, nothing is pruned
    uint64_t share;        // otherwise a node is extended if it has 1/share of any cost
};

// whole_frames is a million, share 20000.
extern const struct bottom_up_bounds bottom_up_default_bounds;

// Build the tree. With `folds` it has the frames of CALL_TREE_SITES, with NULL all of them. If
// `collapses`, a function that calls itself directly is one node. Errors: ERR_NO_MEMORY, ERR_LIMIT.
enum err bottom_up_tree_build(const struct selection *selection,
                              enum call_tree_key key,
                              const struct call_tree_folds *folds,
                              bool collapses,
                              const struct bottom_up_bounds *bounds,
                              struct bottom_up_tree *out) MUST_USE;
void bottom_up_tree_release(struct bottom_up_tree *tree);
