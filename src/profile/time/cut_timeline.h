// SPDX-License-Identifier: MIT
// cut_timeline: a timeline of the blocks that pass a filter, where timeline.h has whole stacks.
//
// Under a range of time (time_range.h) it holds the blocks of the wanted classes:
//
//   live        . . 3 3 4 2 2 . .        before_bytes is what they held when the range began;
//                  [ range ]             outside of it nothing counts
//
// Cells count a row's births and deaths by slice, and cohorts say of those that outlived their
// slice which of them belong to which class: so all of it is exact, in steps of a slice. Under a
// range of sizes a row of which only some blocks are wanted counts with their share of all
// (bucket_range.h), an estimate as its costs are. When blocks of one lifetime were born is not in a
// recording: lifetimes are not looked at, and whoever asks sees to cut_timeline_is_known().
// Invariant: live_bytes of a slice of the range = before_bytes + allocated - freed - left until its
// end, but for rounding where there are sizes. Context: H; pure.
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

// Whether what the selection counts is known over time.
bool cut_timeline_is_known(const struct selection *selection);

// ERR_NO_MEMORY.
enum err cut_timeline_build(const struct selection *selection, struct cut_timeline *out) MUST_USE;

// The same of some rows of the selection: indices of recording.rows.
enum err cut_timeline_of_rows(const struct selection *selection,
                              const uint32_t *rows,
                              size_t count,
                              struct cut_timeline *out) MUST_USE;

void cut_timeline_release(struct cut_timeline *timeline);
