// SPDX-License-Identifier: MIT
// cut_timeline: a time line of only those blocks that pass a filter; timeline.h has whole stacks.
//
// Under a time range (time_range.h) it has the blocks of the wanted classes:
//
//   live        . . 3 3 4 2 2 . .        before_bytes: live when the range began;
//                  [ range ]             nothing outside of the range counts
//
// Cells count a row's births and deaths by slice. Cohorts give the class of the blocks that
// outlived their slice. So the time line is exact, to a slice. Under a range of sizes, a row with
// some wanted blocks counts with their share (bucket_range.h), which is an estimate as its costs
// are.
// A recording does not know when the blocks of one lifetime were born. Ranges of lifetimes are
// ignored; the caller must check cut_timeline_is_known().
// Invariant: live_bytes of a slice of the range = before_bytes + allocated - freed - left until its
// end, except for rounding under a range of sizes. Context: H; pure.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "profile/select/filter.h"
#include "profile/time/timeline.h"

struct cut_timeline {
    struct timeline_point_vec points; // owned; by slice of the recording
    uint64_t slice_ms;                // 0 if the recording has none
    uint32_t first;                   // slices first .. end - 1 are in the range
    uint32_t end;
    uint64_t before_bytes;
};

// Whether the selection's blocks are known over time.
bool cut_timeline_is_known(const struct selection *selection);

// ERR_NO_MEMORY.
enum err cut_timeline_build(const struct selection *selection, struct cut_timeline *out) MUST_USE;

// Build the time line of some rows of the selection: indices of recording.rows.
enum err cut_timeline_of_rows(const struct selection *selection,
                              const uint32_t *rows,
                              size_t count,
                              struct cut_timeline *out) MUST_USE;

void cut_timeline_release(struct cut_timeline *timeline);
