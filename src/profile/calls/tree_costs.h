// SPDX-License-Identifier: MIT
// tree_costs: the costs of the nodes of a tree: of all stacks through a node, and of those that end
// in it.
//
//   node          0 root      1 main      2 load
//   totals      [ 100       | 100       | 80     ]
//   own_of      [ 0         | 1         | REC_NONE ]    load: all of its stacks end in it
//   own         [ nothing   | 20 ]                      main: 20 end in it, 80 go on to load
//
// Most nodes of a large tree are leaves, whose own costs are their totals, or have no own ones. So
// own costs take memory only for the others: struct costs is large.
// Invariants: own[0] is nothing; own_of has an entry for each of totals. Context: H.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "profile/model/cost.h"

enum {
    TREE_COSTS_NOTHING = 0, // the index of own costs that are 0
};

struct tree_costs {
    struct costs_vec totals; // owned; by node
    struct costs_vec own;    // owned; of nodes where some stacks end and others go on
    struct u32_vec own_of;   // owned; by node: index in own; REC_NONE: all stacks end in the node
};

// Begin with `count` nodes without costs, in which all stacks end. ERR_NO_MEMORY.
enum err tree_costs_begin(struct tree_costs *costs, size_t count) MUST_USE;

// Append a node without costs, through which stacks go on. ERR_NO_MEMORY.
enum err tree_costs_push(struct tree_costs *costs) MUST_USE;

// Say that stacks go on from the node, before it has costs.
void tree_costs_goes_on(struct tree_costs *costs, uint32_t node);

// Say that all stacks of a node end in it, which has no own costs so far.
void tree_costs_ends(struct tree_costs *costs, uint32_t node);

// Add the costs of stacks that end in the node to its own ones. If others go on, the node's total
// does not get them: the caller adds up totals. ERR_NO_MEMORY.
enum err tree_costs_add(struct tree_costs *costs, uint32_t node, const struct costs *part) MUST_USE;

static inline const struct costs *tree_costs_total(const struct tree_costs *costs, uint32_t node)
{
    return &costs->totals.items[node];
}

// The costs of the stacks that end in the node.
static inline const struct costs *tree_costs_self(const struct tree_costs *costs, uint32_t node)
{
    const uint32_t own = costs->own_of.items[node];
    return own == REC_NONE ? &costs->totals.items[node] : &costs->own.items[own];
}

// Whether no stack ends in the node, so that its own costs are 0.
static inline bool tree_costs_has_no_own(const struct tree_costs *costs, uint32_t node)
{
    return costs->own_of.items[node] == TREE_COSTS_NOTHING;
}

// The memory of the costs.
size_t tree_costs_bytes(const struct tree_costs *costs);

// Shorten to the first `count` nodes.
void tree_costs_shorten(struct tree_costs *costs, size_t count);
void tree_costs_release(struct tree_costs *costs);
