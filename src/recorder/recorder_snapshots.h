// SPDX-License-Identifier: MIT
// recorder_snapshots: the recorder's samples of memory and looks at memory maps, in its loop.
//
// Samples are taken by proc_sampler, looks by rss_split, and memory_snapshots says when. The main
// program is asked to wait for a last look when it exits (exit_wait.h), unless it runs under a
// seccomp filter. Context: H, the recorder's main thread.
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "recorder/recorder_state.h"

// To be called in each round of the loop, after the lanes were drained.
void recorder_snapshots_round(struct recorder_state *s, uint64_t now_ms);

// Looks at all processes now, because somebody asked; the look is kept. ERR_NO_MEMORY.
enum err recorder_snapshots_now(struct recorder_state *s, uint64_t now_ms) MUST_USE;
