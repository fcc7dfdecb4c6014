// SPDX-License-Identifier: MIT
// function_costs: which function calls which at what cost, of one recording or of two.
//
// All tables are keyed costs (keyed_costs.h) of the top-down tree by location, with all frames or
// with folded wrapper frames (call_tree.h), under these keys:
//
//   BY_FUNCTION   every function                      self and inclusive costs
//   BY_CALLER     the calls into one function         by the calling function
//   BY_CALLEE     the calls out of it                 by the called function
//   BY_LOCATION   the lines of it                     of the new recording alone
//
// Functions are those of a code union, so both recordings have columns of the same length. The last
// key of BY_CALLER is the thread's entry. The last key of BY_CALLEE is the function's own
// allocations. Context: H.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "profile/calls/tree_view.h"
#include "profile/model/code_union.h"
#include "profile/tables/keyed_costs.h"

// The tree of one side, and the function of each of its nodes.
struct function_tree {
    struct call_tree tree;
    struct u32_vec functions; // ids of the union, REC_NONE for the root
};

struct function_trees {
    const struct code_union *code; // borrowed
    struct function_tree sides[SIDE_COUNT];
    size_t count; // of sides
};

// Build the trees. `old` is NULL for one recording. `code` must be of the selections' profiles.
// ERR_NO_MEMORY.
enum err function_trees_build(const struct code_union *code,
                              const struct selection *new,
                              const struct selection *old,
                              enum call_tree_frames frames,
                              struct function_trees *out) MUST_USE;
void function_trees_release(struct function_trees *trees);

// The same for the callers, callees and lines of `function`. If its frames are folded everywhere,
// the trees have all frames.
enum err function_trees_build_of(const struct code_union *code,
                                 const struct selection *new,
                                 const struct selection *old,
                                 enum call_tree_frames frames,
                                 uint32_t function,
                                 struct function_trees *out) MUST_USE;

enum function_key {
    BY_FUNCTION,
    BY_CALLER,
    BY_CALLEE,
    BY_LOCATION,
};

// Costs of both sides under the same keys. SIDE_OLD is empty with one recording.
struct function_costs {
    struct keyed_costs sides[SIDE_COUNT];
};

// Build the costs. `function` is the one whose callers, callees or lines are wanted; BY_FUNCTION
// ignores it.
enum err function_costs_build(const struct function_trees *trees,
                              enum function_key by,
                              uint32_t function,
                              struct function_costs *out) MUST_USE;
void function_costs_release(struct function_costs *costs);

// Return whether a key has any costs. A function without costs is in no stack, or its frames are
// folded everywhere.
bool function_costs_have(const struct function_costs *costs, uint32_t key);

struct ranked_key {
    uint32_t key;
    uint64_t score;
};

DEFINE_VEC(ranked_key_vec, struct ranked_key);

// List the keys that have any costs, highest first, ties by key.
enum err function_costs_rank(const struct function_costs *costs,
                             bool by_self, // else inclusive
                             enum cost cost,
                             enum side_score score,
                             struct ranked_key_vec *out) MUST_USE;
