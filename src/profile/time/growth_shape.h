// SPDX-License-Identifier: MIT
// growth_shape: whether what a process holds of some stacks goes on growing, by its history.
//
// Two things are known of each time slice: what was live at its end, and what of all that is never
// freed was born in it. The second, the births, says what no level can: a leak leaves some of every
// part of the run behind, a cache that is renewed leaves young blocks only.
//
//        live   ____/\_/\/\_/\_/\/\_/\     births             . .. ..   bounded
//               __/\/\/\/\/\/\/\//\/\/\    births . .. . . . . . .  .   growing, under it a noise
//               __/````````````````````    births ....                  start_up, or stopped
//               _/|_/|_/|_/|_/|_/|_/|_/    births                  ...  sawtooth
//
// In this order: births that ended long ago, as their gaps go, have stopped. Else the window from
// the first birth to the end is cut into quarters. Where no birth is in the third, all before it is
// an old matter, and the window begins anew behind it. A window that the level enters as high as it
// leaves it is bounded; one whose level had been as high before, and had come down, is a tooth or a
// burst. What is left grows if the level rises from the third quarter to the last by what was born
// in the third (but for noise: the median distance from the median), and was born in the second,
// too, or rises clearly.
// Context: H; pure.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum growth_class {
    GROWTH_UNKNOWN,  // too few slices
    GROWTH_GROWING,  // to the very end
    GROWTH_STOPPED,  // grew, and then no more
    GROWTH_START_UP, // stopped within the first eighth of the process's life
    GROWTH_BOUNDED,  // is renewed all the time, and does not grow
    GROWTH_SAWTOOTH, // rises, and falls again
    GROWTH_BURSTS,   // the same, and is low most of the time
    GROWTH_LATE,     // came just before the end: nothing can be told
    GROWTH_ONCE,     // it never was more than one block
    GROWTH_COUNT,
};

enum growth_confidence {
    CONFIDENCE_NONE, // of GROWTH_UNKNOWN
    CONFIDENCE_LOW,  // few births, or few slices
    CONFIDENCE_MEDIUM,
    CONFIDENCE_HIGH,
    CONFIDENCE_COUNT,
};

// As in JSON: snake_case. Static.
const char *growth_class_name(enum growth_class class);
const char *growth_confidence_name(enum growth_confidence confidence);

// The slices in which the process was there. All arrays are borrowed.
struct growth_history {
    size_t count;
    const uint64_t *live_bytes;  // at each slice's end
    const uint64_t *birth_bytes; // of what is never freed
    uint64_t allocations;        // freed and unfreed
    size_t step;                 // slices in which one birth is known; at least 1
};

struct growth_verdict {
    enum growth_class class;
    enum growth_confidence confidence;
    double slope_bytes;  // a slice; 0 unless GROWTH_GROWING
    size_t latest_birth; // slice; 0 if there is none
};

// ERR_NO_MEMORY.
enum err growth_judge(const struct growth_history *history, struct growth_verdict *out) MUST_USE;
