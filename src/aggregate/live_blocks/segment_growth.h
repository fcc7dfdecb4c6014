// SPDX-License-Identifier: MIT
// segment_growth: segments of a live_table grow, split and shrink.
//
// A segment grows when it is SEGMENT_FULL_SLOTS full, and splits in two when it has the largest
// size: so growth copies one segment at most. If both lines of a block are full, others move to
// their alternate lines. Context: H, one thread. Failure: ERR_NO_MEMORY leaves the table unchanged.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "aggregate/live_blocks/live_segments.h"
#include "aggregate/live_blocks/slot_line.h"
#include "base/compiler.h"
#include "base/err.h"

// Slots of a page, out of 256: a segment grows at SEGMENT_FULL_SLOTS, and shrinks below
// SEGMENT_SPARSE_SLOTS.
enum {
    SEGMENT_FULL_SLOTS = 215,
    SEGMENT_SPARSE_SLOTS = 64,
};

// Put `slot`, whose hash is `hash`, into `segment`; move others to their alternate lines if needed.
// Return false, with everything unchanged, if no way was found.
bool live_segment_put(const struct live_segments *all,
                      struct live_segment *segment,
                      struct live_slot slot,
                      uint64_t hash);

// Make room for the address of `hash`. Segments may move.
enum err live_segments_grow(struct live_segments *all, uint64_t hash) MUST_USE;

// Give memory of a sparse segment back.
void live_segment_shrink(struct live_segments *all, struct live_segment *segment);

// Free all segments and the directory.
void live_segments_release(struct live_segments *all);
