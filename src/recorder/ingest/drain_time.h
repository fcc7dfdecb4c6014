// SPDX-License-Identifier: MIT
// drain_time: the time of the session as the drain may use it: what programs write is a claim.
// Context: H, the recorder's main thread.
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/minmax.h"
#include "recorder/ingest/drain.h"

enum {
    // the duration of a pass: a program may be ahead of our clock by that
    DRAIN_TIME_SLACK_MS = 1000,
};

// Return the time to use for a time that a program wrote: a time far ahead of our clock is wrong.
static inline uint64_t drain_process_time(uint64_t written_ms, uint64_t clock_ms)
{
    return written_ms <= clock_ms + DRAIN_TIME_SLACK_MS ? written_ms : clock_ms;
}

// Return the time as the processes read it: a clock that rests stands still, and they ask the
// system. A program may overwrite it.
static inline uint64_t drain_session_clock_ms(const struct drain *drain)
{
    const struct session_header *header = drain->session->header;
    // Relaxed: it orders nothing.
    const uint64_t clock = atomic_load_explicit(&header->clock_ms, memory_order_relaxed);
    return (clock & SESSION_CLOCK_RESTS) == 0
               ? clock
               : (clock_monotonic_ns() - header->clock_start_ns) / NS_PER_MS;
}

// Return the time now: the clock advances during a pass. No thread has read a later time. One that
// found the clock at rest has asked the system; its time is later than the clock's until the clock
// ticks again, for many milliseconds on a busy machine.
static inline uint64_t drain_process_now_ms(const struct drain *drain, uint64_t clock_ms)
{
    return drain->clock != NULL
               ? session_clock_true_ms(drain->clock)
               : max_u64(clock_ms, drain_process_time(drain_session_clock_ms(drain), clock_ms));
}
