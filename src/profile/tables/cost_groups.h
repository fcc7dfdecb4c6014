// SPDX-License-Identifier: MIT
// cost_groups: the selection's costs, grouped by function, file, module, thread, process or size.
//
//   function, file   of the call site (wrappers.h)
//   module           of the call site
//   thread, process  that allocated; an exec makes another process here
//   size             of the blocks, by powers of two; only calls and bytes allocated are known
//
// Invariant: the groups add up to the selection, except for the costs in `unknown`.
// Context: H.
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "host/text/strbuf.h"
#include "profile/calls/call_sites.h"

enum cost_group_by {
    COST_GROUPS_BY_FUNCTION,
    COST_GROUPS_BY_FILE,
    COST_GROUPS_BY_MODULE,
    COST_GROUPS_BY_THREAD,
    COST_GROUPS_BY_PROCESS,
    COST_GROUPS_BY_SIZE,
    COST_GROUPS_BY_COUNT,
};

// The name after --group-by. Static.
const char *cost_group_by_name(enum cost_group_by by);

struct cost_group {
    uint32_t id; // function, name, module, thread, process, or the power of two + 1; REC_NONE: of
                 // none
    struct costs costs;
};

DEFINE_VEC(cost_group_vec, struct cost_group);

struct cost_groups {
    const struct profile *profile; // borrowed
    enum cost_group_by by;
    uint32_t unknown;            // cost_groups_unknown
    struct cost_group_vec items; // owned; highest first
};

// The costs that are unknown for groups of the selection, and 0: bit n for enum cost n.
uint32_t cost_groups_unknown(const struct selection *selection, enum cost_group_by by);

// Build the groups, ranked by `cost`, groups without any of it last. By size, the smallest comes
// first.
enum err cost_groups_build(const struct selection *selection,
                           enum cost_group_by by,
                           enum cost cost,
                           struct cost_groups *out) MUST_USE;
void cost_groups_release(struct cost_groups *groups);

// Append the name of a group, or the detail that distinguishes groups of one name (a module's path,
// a process id). Either may be "". Texts are the recording's, not made safe.
void cost_group_append_name(const struct cost_groups *groups, size_t index, struct strbuf *out);
void cost_group_append_detail(const struct cost_groups *groups, size_t index, struct strbuf *out);
