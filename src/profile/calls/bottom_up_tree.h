// SPDX-License-Identifier: MIT
// bottom_up_tree: the selected stacks as a tree from the allocating functions outwards, of bounded
// size.
//
// Where stacks part early on their way out, nearly every stack has a branch of its own, and the
// whole tree has as many nodes as all stacks have frames: too many for a large recording. So stacks
// are followed outwards level by level, and a node goes on only if it has a share in any cost that
// somebody may ask about. The others are *pruned*: their totals are right and their stacks are
// known (row_nodes), but they have no children. A tree that is small enough is never pruned.
// Invariants: those of call_tree.h, but for pruned nodes total >= self, and a pruned node has no
// children. `total` is filled in. Context: H.
#pragma once

#include "base/err.h"
#include "profile/calls/call_tree.h"

DEFINE_VEC(flag_vec, uint8_t);

struct bottom_up_tree {
    struct call_tree tree;  // owned
    struct flag_vec pruned; // owned; by node
};

struct bottom_up_bounds {
    uint64_t whole_frames; // of all stacks, up to which nothing is pruned
    uint64_t share;        // beyond: a node goes on if it has 1/share of any cost
};

// A million frames; a 20000th.
extern const struct bottom_up_bounds bottom_up_default_bounds;

// `collapses`: a function that calls itself directly is one node. ERR_NO_MEMORY, ERR_LIMIT.
enum err bottom_up_tree_build(const struct selection *selection,
                              enum call_tree_key key,
                              bool collapses,
                              const struct bottom_up_bounds *bounds,
                              struct bottom_up_tree *out) MUST_USE;
void bottom_up_tree_release(struct bottom_up_tree *tree);
