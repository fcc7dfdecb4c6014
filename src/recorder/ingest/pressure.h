// SPDX-License-Identifier: MIT
// pressure: decides whether several threads keep the recorder busy all the time.
//
// All these threads then wait for the recorder. They should do more work themselves, side by side,
// if that saves the recorder work (nursery.h). A single thread that is too fast is not under
// pressure: it has no other thread to share the work with, and would only become slower.
//
// Time is cut into windows. In a window under pressure the recorder hardly slept, and a good part
// of the events came from other lanes than the busiest one. The measures against pressure reduce
// it; so pressure lasts for some windows after the latest such window, and is judged anew then.
// Context: H, the recorder's main thread. Cannot fail.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define PRESSURE_WINDOW_NS 64000000u
#define PRESSURE_LASTS     16u // windows

// The events of all lanes in one window.
struct lane_load {
    uint64_t events;
    uint64_t busiest_events; // of the lane with the most events
};

// Zeroed: no pressure; the first pressure_turn begins a window.
struct pressure {
    uint64_t window_end_ns; // CLOCK_MONOTONIC
    uint64_t slept_ns;      // in this window
    uint32_t lasts;         // remaining windows of pressure
};

// Note that the recorder slept for that time.
void pressure_note_sleep(struct pressure *pressure, uint64_t slept_ns);

// Return whether a window is over at now_ns (CLOCK_MONOTONIC). The caller then calls
// pressure_judge.
bool pressure_is_due(const struct pressure *pressure, uint64_t now_ns);

// Judge the finished window by the events of its lanes, and begin the next one. Return whether the
// recorder is under pressure from now on.
bool pressure_judge(struct pressure *pressure, uint64_t now_ns, const struct lane_load *load);
