// SPDX-License-Identifier: MIT
// keyed_costs: the costs of a call tree by any key of its nodes: function, line, edge.
//
// Every node of a top-down tree has a key, or none. The self costs of a key belong to stacks that
// end at a node with that key. The inclusive costs belong to stacks that pass through one; each
// stack counts once, however often it has the key:
//
//   main 100 -> walk 90 -> walk 80 -> alloc 80     inclusive: main 100, walk 90 (not 170), alloc 80
//
// So a node's total counts unless an ancestor has the same key. Context: H.
#pragma once

#include "base/err.h"
#include "host/containers/vec.h"
#include "profile/calls/call_tree.h"
#include "profile/select/filter.h"

struct keyed_costs {
    struct costs_vec self;      // owned; by key
    struct costs_vec inclusive; // owned; by key
};

// Sum up the costs. `keys` has an entry for each node, below `key_count` or REC_NONE. The tree must
// have totals.
enum err keyed_costs_build(const struct call_tree *tree,
                           const struct u32_vec *keys,
                           size_t key_count,
                           struct keyed_costs *out) MUST_USE;
void keyed_costs_release(struct keyed_costs *costs);

// Make the self costs of each key those of the call sites with it. Those of the innermost frames,
// which they replace, are mostly in operator new and in headers. `keys` has an entry for each
// location, below the number of keys or REC_NONE.
enum err keyed_costs_take_sites(const struct selection *selection,
                                const struct u32_vec *keys,
                                struct keyed_costs *costs) MUST_USE;

// Return the costs of a key, NULL if it has none.
static inline const struct costs *keyed_costs_at(const struct costs_vec *costs, size_t key)
{
    return key < costs->len ? &costs->items[key] : NULL;
}
