// SPDX-License-Identifier: MIT
// drawn_patterns: programs of known behaviour with random figures, played on a clock of the test.
//
// A run has ticks of work. A pattern allocates and frees in each; drawn figures choose its rates,
// sizes and turning points. The clock maps ticks to time slices, with stalls of the whole program.
// Other call sites of the program allocate in each tick, too, unless the pattern makes it idle.
// Context: H; of tests.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/growth/growth_shape.h"

enum {
    DRAWN_SLICES_MAX = 1024,
    DRAWN_TICKS = 4, // of work in a slice, on average
    DRAWN_BLOCKS_MAX = 200000,
    DRAWN_FIGURES = 4,
};

struct drawn_block {
    uint32_t born; // slice
    uint32_t bytes;
    uint32_t stack;
    int due_later; // one more than the next block that is freed in the same tick; 0: none
    bool is_live;
};

struct drawn_run {
    uint64_t seed;
    uint64_t random;
    size_t slices;
    int ticks;
    int now;
    bool is_idle;                    // in this tick, set by the pattern
    unsigned figures[DRAWN_FIGURES]; // 0 .. 999
    unsigned unit;                   // of sizes: bytes
    unsigned jitter;                 // of sizes, in percent
    uint32_t stack;                  // of the next blocks
    int slot;                        // of a pattern that keeps a block in mind, or DRAWN_NEVER
    struct drawn_block blocks[DRAWN_BLOCKS_MAX];
    int count;
    int due[DRAWN_SLICES_MAX * DRAWN_TICKS + 1]; // of each tick, one more than a block; 0: none
    int first_live;                              // all before are dead
    size_t live_count;
    uint64_t level;
    size_t step;  // of the history, in slices
    size_t slice; // of the current tick
    uint64_t live_bytes[DRAWN_SLICES_MAX];
    uint64_t birth_bytes[DRAWN_SLICES_MAX];
    uint64_t work[DRAWN_SLICES_MAX];
};

struct drawn_pattern {
    const char *name;
    void (*play)(struct drawn_run *run); // one tick
    unsigned classes;                    // bits of enum growth_class: the right ones
};

// The rule was fitted to the first ones. The others were written afterwards and judge it.
extern const struct drawn_pattern drawn_patterns[];
extern const size_t drawn_pattern_count;
extern const struct drawn_pattern service_patterns[];
extern const size_t service_pattern_count;
extern const struct drawn_pattern everyday_patterns[];
extern const size_t everyday_pattern_count;

void drawn_run_play(struct drawn_run *run,
                    const struct drawn_pattern *pattern,
                    size_t slices,
                    uint64_t seed);

// Let everything in a step of `step` slices count in its first one, as in a coarse recording.
void drawn_run_coarsen(struct drawn_run *run, size_t step);

// What the recording of the run would hold. The arrays are the run's.
struct growth_history drawn_history(const struct drawn_run *run);
