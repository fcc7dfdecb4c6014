// SPDX-License-Identifier: MIT
// timeline: what a selection did in each time slice, and its live bytes at the end of each.
//
// For a whole recording, these are the recording's own figures, exact to the slice. For a part,
// they are sums of the rows' cells, which may be coarser (process_lives.h).
// Invariant: live_bytes of slice n = allocated - freed - left, summed over slices 0 to n, but at
// most the peak.
// Context: H.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "profile/accuracy/sampling.h"
#include "profile/select/filter.h"

struct timeline_point {
    uint64_t allocations;
    uint64_t allocated_bytes;
    uint64_t frees;
    uint64_t freed_bytes;
    uint64_t temporary;
    uint64_t left_bytes; // live in a process when it left the heap (process_lives.h)
    uint64_t live_bytes; // at the end of the slice
};

DEFINE_VEC(timeline_point_vec, struct timeline_point);

struct timeline {
    uint64_t slice_ms;                // width of a slice, 0 if the recording has none
    struct timeline_point_vec points; // owned
};

enum err timeline_build(const struct selection *selection, struct timeline *out) MUST_USE;
void timeline_release(struct timeline *timeline);

// The errors of the points of a time line, or of a part of one.
struct timeline_errors {
    struct sampling sampling;
    struct sampled_sizes sizes; // of all blocks that the points count
};

// Those of the points of a selection.
struct timeline_errors timeline_errors_of(const struct selection *selection);

// Two standard errors of each figure of a point; all 0 if they are exact, or the errors unknown.
// The sizes of the blocks in a slice are not known: the errors of numbers are upper limits.
struct timeline_point timeline_point_error(const struct timeline_errors *errors,
                                           const struct timeline_point *point);

// Three standard errors of the highest level within a slice: the moment of a maximum is one at
// which the estimate errs upwards, as that of the peak.
uint64_t timeline_highest_error(const struct timeline_errors *errors, uint64_t live_bytes);

// For code that adds up parts of a selection: add a cell; add the live bytes that a row's process
// took along; fill in live_bytes after all cells of the slices were added, if `before_bytes` were
// live before them; at last, limit them to the peak: threads tell what they did at different
// moments, so a sum of rows may be above it for some milliseconds. Estimates have no such limit.
void timeline_point_add(struct timeline_point *point, const struct rec_cell *cell);
void timeline_points_leave(struct timeline_point *points,
                           const struct profile *profile,
                           uint32_t row);
void timeline_points_add_up(struct timeline_point *points, size_t count, uint64_t before_bytes);
void timeline_points_limit(struct timeline_point *points,
                           size_t count,
                           const struct recording *recording);
