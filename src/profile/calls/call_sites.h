// SPDX-License-Identifier: MIT
// call_sites: the selected allocations, merged by the source line that made them.
//
// A call site (wrappers.h) owns all rows whose stacks lead to it, over all threads and
// processes. Its stacks are distinct by location; their addresses may differ.
//
//   load() app.c:12      24.0 MiB      <- struct call_site
//     1 stack of 20.0 MiB              <- struct call_site_stack, the end of a path in `tree`
//     1 stack of  4.0 MiB
//
// Invariants: a site's costs = the sum of its stacks'; the sum of all sites = the selection.
// Context: H.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "profile/calls/call_tree.h"
#include "profile/model/cost.h"

struct call_site {
    uint32_t location;    // REC_NONE for allocations without a stack
    bool is_inlined;      // in the stack that was seen first
    uint32_t stack_first; // in stacks
    uint32_t stack_count;
    struct costs costs;
};

DEFINE_VEC(call_site_vec, struct call_site);

struct call_sites {
    struct call_tree tree;      // owned; top-down, by location; its costs may be missing
    struct call_site_vec sites; // owned
    struct u32_vec stacks;      // owned; nodes of `tree` with costs of their own, grouped by site
    // Sparse: most nodes have no costs of their own, and struct costs is large.
    struct costs_vec costs;   // owned; one entry for each node with costs
    struct u32_vec costs_of;  // owned; by node: index in `costs`, REC_NONE where no stack ends
    struct u32_vec row_sites; // owned; by index in the selection; call_sites_build_alone only
    bool is_lent;             // all of this is borrowed from selection.kept
};

// The costs of one stack. A stack is a node where at least one stack ends.
static inline const struct costs *call_sites_costs(const struct call_sites *sites, uint32_t stack)
{
    return sites->costs.items + sites->costs_of.items[stack];
}

// Both borrow from selection.kept if the selection has it. The result must not be changed.
enum err call_sites_build(const struct selection *selection, struct call_sites *out) MUST_USE;

// Build only the sites, with the same ids and costs, and without tree and stacks (stack_count is
// 0). It takes memory for each site, not for each stack.
enum err call_sites_build_alone(const struct selection *selection, struct call_sites *out) MUST_USE;
// The memory that the sites own.
size_t call_sites_bytes(const struct call_sites *sites);
void call_sites_release(struct call_sites *sites);

// List the ids of the sites with any of `cost`, highest first, ties in a fixed order.
enum err call_sites_ranked(const struct call_sites *sites, enum cost cost, struct u32_vec *out)
    MUST_USE;

// List the stacks of one site in the same way, as nodes of sites->tree.
enum err call_sites_ranked_stacks(const struct call_sites *sites,
                                  const struct call_site *site,
                                  enum cost cost,
                                  struct u32_vec *out) MUST_USE;
