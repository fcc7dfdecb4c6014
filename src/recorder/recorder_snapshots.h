// SPDX-License-Identifier: MIT
// recorder_snapshots: takes memory samples and memory snapshots in the recorder's loop.
//
// proc_sampler takes samples, recorder_breakdown takes snapshots, and memory_snapshots decides
// when. The main program waits at its exit for a last snapshot (exit_wait.h), unless it runs under
// a seccomp filter.
// Context: H, the recorder's main thread.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "recorder/recorder_state.h"

// Take what is due. Called in each round of the loop, after the lanes were drained.
void recorder_snapshots_round(struct recorder_state *s, uint64_t now_ms);

// Return whether the main program waits at its exit for the last snapshot.
bool recorder_snapshots_are_awaited(const struct recorder_state *s);

// Take a snapshot of all processes on request, and keep it. ERR_NO_MEMORY.
enum err recorder_snapshots_now(struct recorder_state *s, uint64_t now_ms) MUST_USE;
