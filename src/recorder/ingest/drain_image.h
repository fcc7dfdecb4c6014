// SPDX-License-Identifier: MIT
// drain_image: ends the images of processes, when they die or execute another program. Of the
// latter drain.h has what the recorder calls.
//
// An image has a slot, or it is awaited: cairn has attached to it, and it has not allocated yet. It
// ends when the next one begins: at the start of the image that joins, at the note of a program
// that cannot be recorded or that is followed, or between two looks at the process.
// Context: H, the recorder's main thread.
#pragma once

#include "recorder/ingest/drain.h"

enum {
    STRANGE_CHECKS_ENOUGH = 2, // in a row that found another process: it is not the recorded one
};

// The start of the image that a process continues as.
struct drain_image {
    uint64_t start_ms;
    uint64_t later_ms; // at most, if that is not exact; else 0
    bool is_recorded;
};

// End the earlier images of the process that have slots.
enum err drain_image_replace(struct drain *drain,
                             pid_t pid,
                             const struct drain_image *next,
                             uint64_t clock_ms) MUST_USE;

// End the process in `slot`, whose lanes are all recycled, and free the slot.
enum err drain_image_end(struct drain *drain, uint32_t slot) MUST_USE;

// Stop watching; the aggregator keeps what it knows.
void drain_image_forget(struct drain *drain, uint32_t slot);
