// SPDX-License-Identifier: MIT
// growth_history: the memory that a process holds by some stacks, over time, and a verdict on it.
// Context: H; pure.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum growth_class {
    GROWTH_UNKNOWN,  // too few slices, or a rise as of a start
    GROWTH_GROWING,  // to the very end, or as long as there was work
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
    const uint64_t *work;        // allocations of the whole process; NULL: unknown
    uint64_t allocations;        // freed and unfreed ones
    uint64_t kept;               // unfreed ones
    bool has_stacks;             // `repeats` is known
    size_t repeats;              // see growth_repeats.h
    size_t step;                 // slices in which one birth is located; at least 1
};

struct growth_verdict {
    enum growth_class class;
    enum growth_confidence confidence;
    double slope_bytes;  // for each slice; 0 unless GROWTH_GROWING
    size_t slope_slices; // the last ones with work, over which that is the slope
    // At least the sum over all blocks of their size times the square of what one of their bytes
    // adds to slope_bytes: the variance of a sampled slope is in proportion (sampling.h).
    double slope_squares;
    size_t latest_birth; // slice; 0 if there is none
    size_t grew_until;   // slices; less than the count if there was no work later; 0 unless
                         // GROWTH_GROWING
    bool is_replaced;    // the level grows, but not by blocks that stay
    bool is_idle_since;  // the process did nothing since it stopped
};
