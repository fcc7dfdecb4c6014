// SPDX-License-Identifier: MIT
// row_groups: the selected rows by call site or stack, for views that add up the cells, buckets or
// cohorts of each group.
//
//   rows        [ 4 9 | 0 2 7 | 1 ]        indices of recording.rows, ascending within a group
//   row_first   [ 0     2       5  6 ]     where each group begins
//
// A group's rows are from all threads and processes. Invariants: every selected row is in one
// group; groups are in the order of call_sites.sites or .stacks. Context: H.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "profile/calls/call_sites.h"
#include "profile/select/filter.h"
#include "profile/time/timeline.h"

enum row_group_by {
    ROW_GROUPS_BY_SITE,
    ROW_GROUPS_BY_SITE_ALONE, // without the stacks of the sites, which may need much memory
    ROW_GROUPS_BY_STACK,
};

struct row_group {
    uint32_t site;        // in call_sites.sites
    uint32_t stack;       // node of call_sites.tree; REC_NONE if grouped by call site
    uint32_t stack_count; // 0 without stacks
    struct costs costs;
};

DEFINE_VEC(row_group_vec, struct row_group);

struct row_groups {
    const struct profile *profile; // borrowed
    struct call_sites sites;       // owned
    struct row_group_vec groups;   // owned
    struct u32_vec rows;           // owned; by group
    struct u32_vec row_first;      // owned; groups + 1 entries
    struct u32_vec cell_starts;    // owned; by row of the recording: its first cell
    bool is_lent;                  // all of this is borrowed from selection.kept
};

// Borrow from selection.kept if the selection has it. The result must not be changed.
enum err row_groups_build(const struct selection *selection,
                          enum row_group_by by,
                          struct row_groups *out) MUST_USE;
void row_groups_release(struct row_groups *groups);

// The location of a group's call site; REC_NONE for allocations without a stack.
uint32_t row_groups_location(const struct row_groups *groups, uint32_t group);

// Compute what the group did in each time slice, and its live bytes at the end of each. `points`
// has slice_count items; they are overwritten.
void row_groups_timeline(const struct row_groups *groups,
                         uint32_t group,
                         struct timeline_point *points);
