// SPDX-License-Identifier: MIT
// claimed_counter: what recorded programs count in shared memory, believed as far as it is
// possible.
//
// Counters only grow, and no counter by more than one event in 10 ns, since each event is a call of
// an allocator. What a program wrote over them by mistake is told from that.
// Context: H.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define TOLD_EVENTS_PER_MS 100000u
#define TOLD_BYTES_MAX     ((uint64_t)1 << 47) // of one block: what an address space holds

// The most that a counter of events can stand at, at clock_ms of a session. A recorder may be late.
static inline uint64_t claimed_counter_most(uint64_t clock_ms)
{
    enum {
        LATE_MS = 1000
    };
    const uint64_t most_ms = UINT64_MAX / TOLD_EVENTS_PER_MS - LATE_MS;
    return ((clock_ms < most_ms ? clock_ms : most_ms) + LATE_MS) * TOLD_EVENTS_PER_MS;
}

// Adds to *sum what a counter that now stands at `now` has gained since it stood at *known. False:
// it cannot stand there; then nothing has changed.
static inline bool claimed_counter_take(uint64_t now, uint64_t most, uint64_t *known, uint64_t *sum)
{
    if (now < *known || now > most) {
        return false;
    }
    *sum += now - *known;
    *known = now;
    return true;
}
