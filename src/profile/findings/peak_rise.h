// SPDX-License-Identifier: MIT
// peak_rise: why the heap reached its peak: what it gained since the trough before it.
//
//   live bytes        peak
//            _/\     /|
//           /   \___/ |         The trough is the lowest level before the last rise to the peak
//          /    ^     |         from at most half of it, or the beginning of the run.
//               trough
//
// What a call site holds at the peak is exact. What it held at the trough is known at the end of
// the trough's time slice. Context: H.
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "profile/time/row_groups.h"

struct peak_rise {
    uint64_t trough_ms;
    uint64_t trough_bytes;  // live then
    uint64_t peak_ms;       // end of the peak's time slice
    uint64_t freed_bytes;   // between the two, whenever allocated
    uint32_t mark;          // the last mark of the user or the program before the peak, or REC_NONE
    struct u64_vec gained;  // owned; by group: bytes, 0 for groups that lost
    struct u32_vec threads; // owned; by group: the thread that gained most, or REC_NONE
};

// Compute the rise of a whole recording. `groups` are of all its rows. ERR_NO_MEMORY.
enum err peak_rise_build(const struct row_groups *groups, struct peak_rise *out) MUST_USE;

// Return the bytes of all blocks that the gain of a call site depends on: the site holds some at
// the peak, and held some at the trough. The gain has the error of their sum.
uint64_t peak_rise_error_bytes(uint64_t peak_bytes, uint64_t gained_bytes);
void peak_rise_release(struct peak_rise *rise);
