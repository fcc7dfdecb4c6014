// SPDX-License-Identifier: MIT
// series: the whole recording over time, in at most SERIES_SLICES_MAX slices of equal width.
//
// When the run outgrows them, neighbours merge and the width doubles. A slice stores differences of
// running sums, so an event costs nothing here; time that moves past a slice closes it.
// Context: H, one thread; no allocation.
#pragma once

#include <stdint.h>

#include "base/compiler.h"
#include "recording/format/tables.h"

#define SERIES_SLICES_MAX 1024u

// The running sums of a recording.
struct running_sums {
    uint64_t allocations;
    uint64_t allocated_bytes;
    uint64_t frees;
    uint64_t freed_bytes;
    uint64_t temporary;
    uint64_t live_bytes;
    uint64_t slice_max_bytes; // highest live_bytes since series_advance last reset it
    // live at the end of the last process, until another one begins. Slices include it, so that a
    // recording ends with the bytes that were live at its end
    uint64_t last_ended_bytes;
};

struct series {
    uint64_t slice_ms; // 1 << slice_shift
    uint32_t slice_shift;
    uint32_t current;                           // the open slice
    struct running_sums opened;                 // sums when the open slice began
    struct rec_slice slices[SERIES_SLICES_MAX]; // [current]: the part that merging put there
};

// Initialize an empty series in zeroed memory.
void series_init(struct series *series);

// Advance to now_ms; the events in `sums` happened before. Resets sums->slice_max_bytes. A time
// before the open slice counts as that slice. Returns how often neighbours merged: slice s is now s
// >> result.
uint32_t series_advance(struct series *series, struct running_sums *sums, uint64_t now_ms) MUST_USE;

// Copy the slices up to the open one, in its present state, to `out`, which has room for
// current + 1. Return their number.
uint32_t
series_collect(const struct series *series, const struct running_sums *sums, struct rec_slice *out);
