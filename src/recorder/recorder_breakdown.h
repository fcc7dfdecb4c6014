// SPDX-License-Identifier: MIT
// recorder_breakdown: the memory snapshots of all processes at one moment, and whether they hold.
//
// RSS is of the moment when the kernel writes the map; the live blocks are those of the events that
// have been read. So the lanes are read once more between the two, and later the snapshots are
// judged: if the heap changed much meanwhile, they are doubted.
// Processes that were attached to are looked at from then on, before they have joined.
// Context: H, the recorder's main thread; part of recorder_snapshots.h.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "recorder/recorder_state.h"

// The start of something whose cost is bounded.
struct expense {
    uint64_t began_ns;
    uint64_t processor_ns; // of this thread
};
struct expense expense_begin(void);

// Return the processor time. Waiting for it on a busy machine, or for the kernel's lock of a
// program's memory, costs little, but should not take all the time.
uint64_t expense_ns(const struct expense *expense);

// A recorded process whose memory can be looked at.
struct living_process {
    struct aggregator_process *process;
    pid_t pid;
    uint32_t slot; // SESSION_MAX_PROCESSES: it was attached to and has not joined
};
DEFINE_VEC(living_process_vec, struct living_process);

// List them. ERR_NO_MEMORY.
enum err recorder_living(const struct recorder_state *s, struct living_process_vec *out) MUST_USE;

// Take snapshots of all processes; `flags` of the main program's. ERR_NO_MEMORY.
enum err
recorder_breakdown_take(struct recorder_state *s, uint64_t now_ms, uint32_t flags, bool was_asked)
    MUST_USE;

// Doubt the latest snapshots if they do not hold.
void recorder_breakdown_judge(struct recorder_state *s, uint64_t now_ms);
