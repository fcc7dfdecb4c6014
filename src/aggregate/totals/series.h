// SPDX-License-Identifier: MIT
// series: the whole recording over time, in at most SERIES_SLICES_MAX slices of equal width.
//
// When the run outgrows them, neighbours merge and the width doubles. Only differences of running
// sums are stored, so an event costs nothing here; a slice is closed when time moves past it.
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
    uint64_t lingering_bytes; // what the last process held when it ended, while no other one is
                              // there: slices still count it, so that a recording ends with what
                              // was live at its end
};

struct series {
    uint64_t slice_ms; // 1 << slice_shift
    uint32_t slice_shift;
    uint32_t current;                           // the open slice
    struct running_sums opened;                 // sums when the open slice began
    struct rec_slice slices[SERIES_SLICES_MAX]; // [current] holds what merging put there
};

void series_init(struct series *series);

// Time moves on to now_ms; what is in `sums` happened before. Resets sums->slice_max_bytes. Earlier
// times than the open slice's count as its own. Returns how often neighbours merged: slice s is now
// s >> that.
uint32_t series_advance(struct series *series, struct running_sums *sums, uint64_t now_ms) MUST_USE;

// Writes the open slice's present state into slices[current] of `out`, a copy of series->slices.
// Returns how many slices there are.
uint32_t series_collect(const struct series *series,
                        const struct running_sums *sums,
                        struct rec_slice out[SERIES_SLICES_MAX]);
