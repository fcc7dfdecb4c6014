// SPDX-License-Identifier: MIT
// keyed_costs: costs of a call tree by anything that its nodes can be called: function, line, edge.
//
// Every node of a top-down tree has a key, or none. Self is what ended at nodes with that key.
// Inclusive is what passed through them, counting each stack once however often the key is in it:
//
//   main 100 -> walk 90 -> walk 80 -> alloc 80     inclusive: main 100, walk 90 (not 170), alloc 80
//
// So a node's total counts unless a node above it has the same key. Context: H.
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "profile/calls/call_tree.h"

struct keyed_costs {
    struct costs_vec self;      // owned; by key
    struct costs_vec inclusive; // owned; by key
};

// `keys` has an entry for each node, below `key_count` or REC_NONE. The tree must be added up.
enum err keyed_costs_build(const struct call_tree *tree,
                           const struct u32_vec *keys,
                           size_t key_count,
                           struct keyed_costs *out) MUST_USE;
void keyed_costs_release(struct keyed_costs *costs);

// The function of each node of a tree, REC_NONE for the root.
enum err node_functions(const struct profile *profile,
                        const struct call_tree *tree,
                        struct u32_vec *out) MUST_USE;
