// SPDX-License-Identifier: MIT
// peak_scopes: the peak of one thread between two moments that it marks (cairn_peak_begin).
//
// A thread holds the bytes that it allocated, minus those of them that any thread freed:
// cairn_stats(CAIRN_THREAD) calls them live. The thread's own events arrive in their true order,
// because it sends each at once during a scope. Frees by other threads do not: within a tick
// they may be counted before or after the thread's own events. They count from the thread's next
// tick on. So the result is never below the true peak, and is exact without such frees.
//
// Most recordings have no scopes, and call nothing of this module.
// Context: H, one thread; part of the aggregator. ERR_NO_MEMORY changes nothing.
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "host/containers/map_u64.h"
#include "host/containers/vec.h"
#include "session/layout.h"

// Bytes that other threads freed in the tick `ms`, or between the previous entry and that tick.
struct peak_later {
    uint64_t ms;
    uint64_t bytes;
};
#define PEAK_LATER_MAX 8u // two are usual; drifted lanes need more

// A thread with scopes in `open`.
struct peak_thread {
    uint32_t thread; // entry in the thread table
    uint32_t lane;
    uint32_t open;      // bit n: scope n
    int64_t live_bytes; // since the thread is followed
    // frees by other threads that do not count yet; by time
    struct peak_later later[PEAK_LATER_MAX];
    uint32_t later_count;
    int64_t begin_bytes[LANE_SCOPES_MAX]; // live_bytes at the start of the scope
    int64_t most_bytes[LANE_SCOPES_MAX];  // the maximum since then
};

DEFINE_VEC(peak_thread_vec, struct peak_thread);

struct peak_scopes {
    struct peak_thread_vec threads;
    struct map_u64 index; // thread -> position
};

#define PEAK_UNKNOWN UINT64_MAX

void peak_scopes_release(struct peak_scopes *scopes);

// Begin a scope, or begin it anew. No effect if the thread shares its entry in the thread table
// with another followed thread.
enum err
peak_scopes_begin(struct peak_scopes *scopes, uint32_t thread, uint32_t lane, uint32_t scope)
    MUST_USE;

// Return the most that the thread held during the scope, minus what it held at its start.
// PEAK_UNKNOWN: the scope does not exist.
uint64_t
peak_scopes_most(struct peak_scopes *scopes, uint32_t thread, uint32_t lane, uint32_t scope);

void peak_scopes_end(struct peak_scopes *scopes, uint32_t thread, uint32_t lane, uint32_t scope);

// End all scopes of a thread that has ended.
void peak_scopes_end_thread(struct peak_scopes *scopes, uint32_t thread, uint32_t lane);

// Count an allocation of `thread`, or a free by the thread `by` (REC_NONE: unknown) of a block that
// `owner` allocated.
void peak_scopes_allocated(struct peak_scopes *scopes,
                           uint32_t thread,
                           uint64_t tick_ms,
                           uint64_t bytes);
void peak_scopes_freed(
    struct peak_scopes *scopes, uint32_t owner, uint32_t by, uint64_t tick_ms, uint64_t bytes);
