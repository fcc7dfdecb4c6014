// SPDX-License-Identifier: MIT
// memory_snapshots: when to take memory snapshots, and which to keep.
//
// A snapshot costs more than a sample. One is taken when all processes together have grown by a
// twentieth since the highest snapshot, when a second has passed (ten while the recorder rests), on
// request, and when the program begins to exit. For the first two reasons snapshots take at most
// 1 / SNAPSHOT_COST_DIVISOR of a processor's time, a quarter of that with --sample, unless the
// processes have grown by a half.
//
// A snapshot compares what the kernel says with the blocks that are counted. A recorder that was
// preempted between the two may compare two different heaps. Such a moment is doubted: it does not
// stay the highest one if another of nearly its size can be taken.
//
//   kept whole    the highest one, the last one, the last SNAPSHOTS_ASKED_MAX that were requested
//   kept as sums  SNAPSHOTS_SERIES_MAX snapshots over time; when full, every second is dropped
//
// Context: H, the recorder's main thread.
// Memory: bounded by the processes that run at one time.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "recorder/memory/rss_split.h"

#define SNAPSHOTS_SERIES_MAX    2048u
#define SNAPSHOTS_ASKED_MAX     8u
#define SNAPSHOT_INTERVAL_MS    1000u
#define SNAPSHOT_REST_MS        30000u // the same while the recorder rests
#define SNAPSHOT_COST_DIVISOR   50u
#define SNAPSHOT_GROWTH_DIVISOR 20u

// The snapshots of all processes at one time, and the tables of their parts and survivors.
struct memory_moment {
    uint64_t time_ms;
    uint64_t rss_bytes; // sum
    struct rec_memory_snapshot_vec memory_snapshots;
    struct rss_tables tables;
};

// Zeroed is empty and valid.
struct memory_snapshots {
    struct rec_memory_snapshot_vec series; // by time
    struct memory_moment peak;
    struct memory_moment last;
    struct memory_moment asked[SNAPSHOTS_ASKED_MAX];
    uint32_t asked_count;   // number of requested ones
    uint64_t highest_bytes; // the largest sum of a moment
    bool doubts_peak;       // one with nearly as much as highest_bytes replaces it
    uint64_t next_ms;       // earliest time of the next regular one
    bool is_resting;        // see proc_sampler.h
    uint64_t affords_ms;    // when the cost of the latest one is compensated
    uint32_t thrift_bits;   // they take 1 / 2^thrift_bits of their usual share of a processor
};

void memory_moment_release(struct memory_moment *moment);
void memory_snapshots_release(struct memory_snapshots *snapshots);

// Return whether to take a snapshot now; all processes together have `rss_bytes`.
bool memory_snapshots_are_due(const struct memory_snapshots *snapshots,
                              uint64_t now_ms,
                              uint64_t rss_bytes);

// Take the snapshots of a moment. On success `moment` is moved and zeroed. `was_asked`: on request.
enum err memory_snapshots_add(struct memory_snapshots *snapshots,
                              struct memory_moment *moment,
                              bool was_asked,
                              uint64_t spent_ns) MUST_USE;

// Doubt the last moment: the heap changed while it was taken. `is_known`: surely, so that its live
// blocks are marked as estimates.
void memory_snapshots_doubt(struct memory_snapshots *snapshots, bool is_known);

// Append all that is kept, by time.
enum err memory_snapshots_collect(const struct memory_snapshots *snapshots,
                                  struct rec_memory_snapshot_vec *out_snapshots,
                                  struct rss_tables *out_tables) MUST_USE;
