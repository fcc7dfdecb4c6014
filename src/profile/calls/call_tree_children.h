// SPDX-License-Identifier: MIT
// call_tree_children: finds the children of a top-down tree's nodes, while the tree is built.
//
// A child is found by its parent, its id and, in a tree by location, whether it is inlined.
// Usually it is the newest node with its id. If that node is older than the parent, there is no
// such child. Otherwise the parent's children are searched. Few are searched one by one; those of
// a parent with more are put into a hash map by the first such search.
// Context: H; pure.
#pragma once

#include "base/err.h"
#include "host/containers/map_u64.h"
#include "host/containers/vec.h"
#include "profile/calls/call_tree.h"

struct call_tree_children {
    enum call_tree_key key;
    struct u32_vec newest;      // owned; by id and inlined: the newest node with them; 0: none
    struct map_u64 indexed;     // owned; (parent, id and inlined) -> node, of indexed parents
    struct flag_vec is_indexed; // owned; by node
};

// Begin with a tree that has only its root. ERR_NO_MEMORY.
enum err call_tree_children_begin(struct call_tree_children *children,
                                  const struct profile *profile,
                                  enum call_tree_key key) MUST_USE;

// Find the child of its parent that equals `wanted`, or append it. wanted->next_sibling is the
// parent's first child. ERR_NO_MEMORY, ERR_LIMIT.
enum err call_tree_children_take(struct call_tree_children *children,
                                 struct call_tree_node_vec *nodes,
                                 const struct call_tree_node *wanted,
                                 uint32_t *out) MUST_USE;
void call_tree_children_release(struct call_tree_children *children);
