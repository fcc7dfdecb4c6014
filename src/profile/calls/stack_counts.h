// SPDX-License-Identifier: MIT
// stack_counts: how many distinct stacks each call site has.
//
// Stacks are distinct by location, and counted as call_sites.h lists them. Counting takes a part
// of the time and the memory of the tree that lists them: nodes of the recording get a number by
// parent and location, and a stack has a bit for each cost. Context: H.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "profile/calls/call_sites.h"

struct stack_counts {
    struct u32_vec counts; // owned; COST_COUNT + 1 entries for each site
    bool is_lent;          // borrowed from selection.kept
};

// Count for the sites of call_sites_build_alone. Borrow from selection.kept if the selection has
// it. Errors: ERR_NO_MEMORY, ERR_LIMIT.
enum err stack_counts_build(const struct selection *selection, struct stack_counts *out) MUST_USE;
void stack_counts_release(struct stack_counts *counts);

// The stacks of a site with any of `cost`.
static inline uint32_t
stack_counts_of(const struct stack_counts *counts, size_t site, enum cost cost)
{
    return counts->counts.items[site * (COST_COUNT + 1) + cost];
}

// All stacks of a site.
static inline uint32_t stack_counts_all(const struct stack_counts *counts, size_t site)
{
    return counts->counts.items[site * (COST_COUNT + 1) + COST_COUNT];
}
