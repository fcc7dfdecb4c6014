// SPDX-License-Identifier: MIT
// memory_snapshots: when to look at whole memory maps, and which looks to keep.
//
// A look costs more than a sample, so it is taken only now and then: when all processes together
// have grown by a twentieth since the highest look, when a second has passed, when somebody asks,
// and when the program begins to exit; and the first two only as long as looks stay below one part
// in LOOK_COST_DIVISOR of a processor, unless the processes have grown by a half.
//
//   kept whole      the highest moment, the last one, the last LOOKS_ASKED_MAX that were asked for
//   kept as sums    LOOKS_SERIES_MAX looks over time; when full, every second moment goes
//
// Context: H, the recorder's main thread. Memory: bounded by the processes that run at one time.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "recorder/memory/rss_split.h"

#define LOOKS_SERIES_MAX    2048u
#define LOOKS_ASKED_MAX     8u
#define LOOK_INTERVAL_MS    1000u
#define LOOK_COST_DIVISOR   50u
#define LOOK_GROWTH_DIVISOR 20u

// The looks at all processes at one time, and their parts (part.look: index in looks).
struct look_moment {
    uint64_t time_ms;
    uint64_t rss_bytes; // sum
    struct rec_memory_snapshot_vec looks;
    struct rec_part_vec parts;
};

// Zeroed is empty and valid.
struct memory_snapshots {
    struct rec_memory_snapshot_vec series; // in order of time
    struct look_moment peak;
    struct look_moment last;
    struct look_moment asked[LOOKS_ASKED_MAX];
    uint32_t asked_count; // so many were asked for in all
    uint64_t next_ms;     // when the next regular one may be taken
    uint64_t affords_ms;  // when the latest one is paid for
};

void look_moment_release(struct look_moment *moment);
void memory_snapshots_release(struct memory_snapshots *looks);

// Whether to look now, when all processes together have `rss_bytes`.
bool memory_snapshots_are_due(const struct memory_snapshots *looks,
                              uint64_t now_ms,
                              uint64_t rss_bytes);

// Takes a moment in, which becomes ours (zeroed) on success. `was_asked`: somebody wanted it.
enum err memory_snapshots_add(struct memory_snapshots *looks,
                              struct look_moment *moment,
                              bool was_asked,
                              uint64_t spent_ns) MUST_USE;

// Appends all that is kept, in order of time.
enum err memory_snapshots_collect(const struct memory_snapshots *looks,
                                  struct rec_memory_snapshot_vec *out_looks,
                                  struct rec_part_vec *out_parts) MUST_USE;
