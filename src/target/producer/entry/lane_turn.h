// SPDX-License-Identifier: MIT
// lane_turn: takes a thread into a new tick, and recovers its lane after a fault.
//
// The recorder empties the book of a thread that sleeps. book_head.owner names the side at work.
// Inside a tick the thread needs no lock: the recorder comes only when the clock has moved since
// the thread's last event, and not while the thread is inside a hook. So a thread must not come
// into a new tick in another way than by lane_turn, which takes the lock. lane_entry.h calls it.
// Context: T, the lane's thread under the guard. False: the recording has ended.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "target/producer/lane_producer.h"

// Begin the tick of `clock`, the session's.
bool lane_turn(struct lane_producer *p, uint64_t clock) MUST_USE;

// Send what the thread has counted: before a query, and at its end.
bool lane_flush(struct lane_producer *p);

// Complete what was interrupted, and flush, after a hook was left half way.
bool lane_recover(struct lane_producer *p);

ALWAYS_INLINE uint64_t lane_clock(const struct lane_producer *p)
{
    // Relaxed: threads that hand a block to each other synchronize by doing so, and one atomic
    // never runs backwards along such a chain.
    return atomic_load_explicit(&p->session->clock_ms, memory_order_relaxed);
}

// Whether no time has passed since the last TICK.
ALWAYS_INLINE bool lane_is_in_tick(const struct lane_producer *p)
{
    return LIKELY(lane_clock(p) == p->clock);
}
