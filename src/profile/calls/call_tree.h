// SPDX-License-Identifier: MIT
// call_tree: the selected stacks as one tree, top-down or bottom-up.
//
//   top-down   root -> main -> load -> grow        what the calls of a function cost
//   bottom-up  root -> grow -> load -> main        which callers lead to an allocating function
//
// This builds top-down trees, bottom_up_tree.h the others. Inlined functions are nodes like any
// other. Nodes are merged by location (function, file, line) or by function; siblings are always
// distinct. A stack adds its costs to the own ones of its last node. total = own + the sum of the
// children's totals; the root's total is the selection's.
// Invariants: node 0 is the root; a parent's id is below its children's. Context: H.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "profile/calls/tree_costs.h"
#include "profile/select/filter.h"

enum call_tree_direction {
    CALL_TREE_TOP_DOWN,
    CALL_TREE_BOTTOM_UP
};
enum call_tree_key {
    CALL_TREE_BY_LOCATION,
    CALL_TREE_BY_FUNCTION
};

// Which frames of a stack a tree has. CALL_TREE_SITES omits wrapper frames (wrappers.h) at both
// ends of the stack. Of several in a row between other frames, it has the outermost, which the
// program called. A stack of wrapper frames alone has its innermost frame.
enum call_tree_frames {
    CALL_TREE_ALL,
    CALL_TREE_SITES,
};

// How a tree of CALL_TREE_SITES folds wrapper frames. A run of several in a row is one node, which
// hides the others. Those at the inner end of a stack are hidden by the call site's node. A run is
// unfolded, one node for each of its frames, if `paths` has the path of the node that would hide
// it. A path is a number made of the functions from the root to the node, by their names, so it is
// the same in every tree of the same shape. It fits into a double.
struct call_tree_folds {
    const uint64_t
        *names; // borrowed; by function: what stands for its name in paths. NULL: no paths
    const uint64_t *paths; // borrowed
    size_t path_count;
    bool collapses; // a function that calls itself directly is one node, and in a path once
};

// All runs are folded, without paths.
extern const struct call_tree_folds call_tree_all_folded;

// NULL for CALL_TREE_ALL.
static inline const struct call_tree_folds *call_tree_folds_of(enum call_tree_frames frames)
{
    return frames == CALL_TREE_SITES ? &call_tree_all_folded : NULL;
}

struct call_tree_node {
    uint32_t parent;       // REC_NONE for the root
    uint32_t first_child;  // REC_NONE without children; children are unordered
    uint32_t next_sibling; // REC_NONE for the last
    uint32_t id;           // location, or function when merged by function
    uint32_t location;     // of the first frame seen here
    uint32_t frame;        // of the recording; the first frame seen here
    uint32_t depth;        // 0 for the root
    uint32_t hidden;       // wrapper frames that the node hides: the most of any stack
    bool is_inlined;
    uint64_t path;        // with folds, else 0
    uint64_t unfolded_by; // the path that unfolded the run of this frame; 0: none
};

DEFINE_VEC(call_tree_node_vec, struct call_tree_node);

struct call_tree {
    struct call_tree_node_vec nodes; // owned
    struct tree_costs costs;         // owned; empty in a tree without costs
    struct u32_vec row_nodes;        // owned; by index in the selection: where its stack ends
    bool is_lent;                    // all of this is borrowed from selection.trees
};

// Build a top-down tree, in time and memory proportional to the recording's nodes. With
// `collapses`, a function that calls itself directly is one node. Errors: ERR_NO_MEMORY, ERR_LIMIT.
enum err call_tree_build_shape(const struct selection *selection,
                               enum call_tree_key key,
                               struct call_tree *out) MUST_USE; // without costs
enum err call_tree_build(const struct selection *selection,
                         enum call_tree_key key,
                         bool collapses,
                         struct call_tree *out) MUST_USE;

// Build a top-down tree of CALL_TREE_SITES. Errors: ERR_NO_MEMORY, ERR_LIMIT.
enum err call_tree_build_sites(const struct selection *selection,
                               enum call_tree_key key,
                               const struct call_tree_folds *folds,
                               struct call_tree *out) MUST_USE;

// Build a top-down tree by location with `frames`, all runs of wrapper frames
// folded. Its nodes have no paths. It borrows from selection.trees if the selection has them, and
// must not be changed.
enum err call_tree_build_frames(const struct selection *selection,
                                enum call_tree_frames frames,
                                struct call_tree *out) MUST_USE;

// List the function of each node of a tree, REC_NONE for the root.
enum err call_tree_functions(const struct profile *profile,
                             const struct call_tree *tree,
                             struct u32_vec *out) MUST_USE;

// For those that build trees:

extern const struct call_tree_node call_tree_root;

// The path of the child of node `parent` for the location; 0 if `folds` is NULL or has no names.
uint64_t call_tree_path_below(const struct call_tree *tree,
                              const struct call_tree_folds *folds,
                              const struct profile *profile,
                              uint32_t parent,
                              uint32_t location);
bool call_tree_unfolds(const struct call_tree_folds *folds, uint64_t path);

// Note that the node hides `count` wrapper frames of a stack.
void call_tree_hide(struct call_tree *tree, uint32_t node, size_t count);

// The memory that the tree owns.
static inline size_t call_tree_bytes(const struct call_tree *tree)
{
    return tree->is_lent ? 0
                         : call_tree_node_vec_bytes(&tree->nodes) + tree_costs_bytes(&tree->costs) +
                               u32_vec_bytes(&tree->row_nodes);
}

void call_tree_release(struct call_tree *tree);
