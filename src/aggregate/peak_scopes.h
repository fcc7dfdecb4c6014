// SPDX-License-Identifier: MIT
// peak_scopes: how much a thread held at most between two moments that it named (cairn_peak_begin).
//
// "Held" is what the thread allocated less what of that was freed, by whomever: what
// cairn_stats(CAIRN_THREAD) calls live. The thread's own events come in their true order, since it
// holds nothing in its nursery meanwhile. Frees by other threads do not: within a tick they may be
// counted before or after what the thread itself did. They count from the thread's next tick on, so
// that what is told is never below the truth; without such frees it is exact.
//
// Nothing is followed in most recordings, and then nothing of this is called. Context: H, one
// thread; part of the aggregator. ERR_NO_MEMORY leaves all as it was.
#pragma once

#include <stdint.h>

#include "aggregate/observer.h"
#include "base/err.h"
#include "host/containers/map_u64.h"
#include "host/containers/vec.h"
#include "session/layout.h"

// What others freed in the tick of `ms`, or in those before it since the last entry.
struct peak_later {
    uint64_t ms;
    uint64_t bytes;
};
#define PEAK_LATER_MAX 8u // two are usual; more where the lanes have drifted apart

// A thread that is followed in the scopes of `open`.
struct peak_thread {
    uint32_t thread; // entry in the thread table
    uint32_t lane;
    uint32_t open;                           // bit n: scope n
    int64_t live_bytes;                      // since it is followed
    struct peak_later later[PEAK_LATER_MAX]; // freed by others, and not counted yet; by time
    uint32_t later_count;
    int64_t begin_bytes[LANE_SCOPES_MAX]; // live_bytes when the scope began
    int64_t most_bytes[LANE_SCOPES_MAX];  // the most that it was since
};

DEFINE_VEC(peak_thread_vec, struct peak_thread);

struct peak_scopes {
    struct peak_thread_vec threads;
    struct map_u64 index; // thread -> position
};

#define PEAK_UNKNOWN UINT64_MAX

void peak_scopes_release(struct peak_scopes *scopes);

// A scope begins, or begins anew. Refused without a word if the thread's entry in the table is
// shared with another one that is followed.
enum err
peak_scopes_begin(struct peak_scopes *scopes, uint32_t thread, uint32_t lane, uint32_t scope)
    MUST_USE;

// The most that the thread held since, beyond what it held when the scope began. PEAK_UNKNOWN:
// there is no such scope.
uint64_t
peak_scopes_most(struct peak_scopes *scopes, uint32_t thread, uint32_t lane, uint32_t scope);

void peak_scopes_end(struct peak_scopes *scopes, uint32_t thread, uint32_t lane, uint32_t scope);

// The thread itself has ended.
void peak_scopes_end_thread(struct peak_scopes *scopes, uint32_t thread, uint32_t lane);

// `thread` allocated; `owner` allocated what `by` (REC_NONE: who knows) frees.
void peak_scopes_allocated(struct peak_scopes *scopes,
                           uint32_t thread,
                           uint64_t tick_ms,
                           uint64_t bytes);
void peak_scopes_freed(
    struct peak_scopes *scopes, uint32_t owner, uint32_t by, uint64_t tick_ms, uint64_t bytes);

// Tells `scopes` of each allocation and free.
struct observer peak_scopes_observer(struct peak_scopes *scopes);
