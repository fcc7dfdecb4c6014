// SPDX-License-Identifier: MIT
// growth_shape: whether the memory that a process holds by some stacks keeps growing.
//
// Two figures are known for each time slice: the bytes live at its end, and the births, the bytes
// allocated in it that are never freed. Births distinguish what levels cannot: a leak leaves
// unfreed blocks in every part of the run, a cache that is renewed leaves only young ones.
//
//        live   ____/\_/\/\_/\_/\/\_/\     births             . .. ..   bounded
//               __/\/\/\/\/\/\/\//\/\/\    births . .. . . . . . .  .   growing, under it a noise
//               __/````````````````````    births ....                  start_up, or stopped
//               _/|_/|_/|_/|_/|_/|_/|_/    births                  ...  sawtooth
//
// The rules apply in this order. Births whose last one is old, compared with the gaps between them,
// have stopped. Else the window from the first birth to the end is divided into quarters. If the
// third quarter has no birth, everything before it is ignored, and a new window begins after it. A
// window whose level is as high at its start as at its end is bounded. A window whose level had
// been as high before, and had fallen since, is a sawtooth or a burst. Other windows grow if the
// level rises from the third quarter to the last by at least half the births of the third, except
// for noise (the median distance from the median), and if either the second quarter has births too
// or the rise is clear.
// If most births of the last half are in an eighth of it, that is one step: it has no slope, and
// the verdict is unsure.
// Context: H; pure.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum growth_class {
    GROWTH_UNKNOWN,  // too few slices
    GROWTH_GROWING,  // to the very end
    GROWTH_STOPPED,  // grew, then stopped
    GROWTH_START_UP, // stopped within the first eighth of the process's life
    GROWTH_BOUNDED,  // is renewed all the time without growth
    GROWTH_SAWTOOTH, // rises and falls again
    GROWTH_BURSTS,   // rises and falls, and is low most of the time
    GROWTH_LATE,     // began just before the end: no verdict possible
    GROWTH_ONCE,     // was never more than one block
    GROWTH_COUNT,
};

enum growth_confidence {
    CONFIDENCE_NONE, // of GROWTH_UNKNOWN
    CONFIDENCE_LOW,  // few births, or few slices
    CONFIDENCE_MEDIUM,
    CONFIDENCE_HIGH,
    CONFIDENCE_COUNT,
};

// The name in JSON: snake_case. Static.
const char *growth_class_name(enum growth_class class);
const char *growth_confidence_name(enum growth_confidence confidence);

// The slices in which the process existed. All arrays are borrowed.
struct growth_history {
    size_t count;
    const uint64_t *live_bytes;  // at each slice's end
    const uint64_t *birth_bytes; // of blocks never freed
    uint64_t allocations;        // freed and unfreed ones
    size_t step;                 // slices in which one birth is located; at least 1
};

struct growth_verdict {
    enum growth_class class;
    enum growth_confidence confidence;
    double slope_bytes;  // for each slice; 0 unless GROWTH_GROWING
    size_t slope_slices; // the last ones, over which that is the slope; 0 unless GROWTH_GROWING
    // At least the sum over all blocks of their size times the square of what one of their bytes
    // adds to slope_bytes: the variance of a sampled slope is in proportion (sampling.h).
    double slope_squares;
    size_t latest_birth; // slice; 0 if there is none
};

// ERR_NO_MEMORY.
enum err growth_judge(const struct growth_history *history, struct growth_verdict *out) MUST_USE;
