// SPDX-License-Identifier: MIT
// pressure: whether several threads keep the recorder busy all the time.
//
// Then the recorder is what all of them wait for, and what spares it work is worth more work of
// theirs, which they do side by side (nursery.h). A single thread that is too fast is another
// case: it has no one to share the work with, and would only get slower.
//
// Time is cut into windows. In one that is pressed, the recorder hardly slept, and a good part of
// the events came from others than the busiest lane. Since being pressed lessens the work, it lasts
// for some windows from the latest one that was; then it is tried whether it still must be.
// Context: H, the recorder's main thread. Cannot fail.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define PRESSURE_WINDOW_NS 64000000u
#define PRESSURE_LASTS     16u // windows

// What lanes brought in one window.
struct lane_load {
    uint64_t events;
    uint64_t busiest_events; // of the lane that brought most of them
};

// Zeroed: not pressed, and a window begins with the first pressure_turn.
struct pressure {
    uint64_t window_end_ns; // CLOCK_MONOTONIC
    uint64_t slept_ns;      // in this window
    uint32_t lasts;         // windows for which it is still pressed
};

// The recorder slept for so long.
void pressure_note_sleep(struct pressure *pressure, uint64_t slept_ns);

// Whether a window is over at now_ns (CLOCK_MONOTONIC): then pressure_judge is to be called.
bool pressure_is_due(const struct pressure *pressure, uint64_t now_ns);

// Judges the window that is over by what lanes brought in it, and begins the next. Returns whether
// the recorder is pressed from now on.
bool pressure_judge(struct pressure *pressure, uint64_t now_ns, const struct lane_load *load);
