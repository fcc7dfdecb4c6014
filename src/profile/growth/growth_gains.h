// SPDX-License-Identifier: MIT
// growth_gains: bytes that came to stay, by time slice, and what such a series says by itself.
//
// There are two series of one history: the births, which stay as the very same blocks, and the
// rises of the floor (growth_floor.h), which stay in any blocks.
// Context: H; pure.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "profile/growth/growth_history.h"

enum {
    WINDOW_STEPS_MIN = 6, // steps of a window
    GAINS_MIN = 4,        // slices with gains in a window
    LATE_DIVISOR = 10,    // of the process's life: what began in the last tenth is late
    TAIL_DIVISOR = 10,    // gains that stopped ended before the last tenth
};

// The gains in slices first .. end - 1.
struct gains {
    size_t moments; // slices with gains
    size_t first;
    size_t last;
    size_t longest_gap; // between two consecutive ones
    uint64_t bytes;
};

struct gains gains_find(const uint64_t *gain_bytes, size_t first, size_t end);

// By the slices with gains, and the steps of slices in which they are looked for.
enum growth_confidence gains_confidence(size_t moments, size_t steps);

// Where the last stretch of gains begins: behind the last pause that is an eighth of the time since
// `first`, and several times as long as most other gaps. `first` if there was no such pause.
size_t gains_last_stretch(const struct growth_history *h, const uint64_t *gain_bytes, size_t first);

// The part of the slices first .. count - 1 in which most was gained.
struct gains_step {
    size_t first;
    size_t end;
    uint64_t bytes;
};

// Find it if it is at most an eighth of them, and more was gained in it than in the rest; else
// return an empty one.
struct gains_step
gains_find_step(const struct growth_history *h, const uint64_t *gain_bytes, size_t first);

// The least-squares line through the levels of the slices first .. count - 1, without what was
// gained in the step. Set the slope's figures.
void gains_find_slope(const struct growth_history *h,
                      const uint64_t *gain_bytes,
                      const struct gains_step *step,
                      size_t first,
                      struct growth_verdict *verdict);
