// SPDX-License-Identifier: MIT
// claimed_counter: accepts the counters of recorded programs in shared memory up to what is
// possible.
//
// Counters only grow. A counter grows by at most one event in 10 ns, since each event is a call of
// an allocator. This detects values that a program wrote over them by mistake.
// Context: H.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define EVENTS_PER_MS_MAX 100000u

// Return the highest possible value of a counter of events at clock_ms of a session. A recorder may
// be late.
static inline uint64_t claimed_counter_most(uint64_t clock_ms)
{
    enum {
        LATE_MS = 1000
    };
    const uint64_t most_ms = UINT64_MAX / EVENTS_PER_MS_MAX - LATE_MS;
    return ((clock_ms < most_ms ? clock_ms : most_ms) + LATE_MS) * EVENTS_PER_MS_MAX;
}

// Add to *sum the growth of a counter from *known to `now`. False: `now` is impossible, and nothing
// has changed.
static inline bool claimed_counter_take(uint64_t now, uint64_t most, uint64_t *known, uint64_t *sum)
{
    if (now < *known || now > most) {
        return false;
    }
    *sum += now - *known;
    *known = now;
    return true;
}
