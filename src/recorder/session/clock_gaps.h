// SPDX-License-Identifier: MIT
// clock_gaps: when the session's clock stood still for longer than a tick.
//
// Programs read the time in the session's clock word. While the recorder is stopped, or gets no
// processor, the word stands still, and what a program dates then has the time of before. Such a
// date is the one at which a gap began, so the gap says how much later the event may have been:
//
//   word     1000  1001                          1750  1751
//                     |--- the recorder stopped --|
//   an exit at 1300 is dated 1001, and may have been 749 ms later
//
// A moment at which a gap began by chance has that error, too. The latest gaps are known.
// Valid when zeroed. Context: H, pure.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define CLOCK_GAPS_MAX 64u
#define CLOCK_GAP_MS   5u // beyond a tick: shorter ones are of every day

struct clock_gaps {
    struct {
        uint64_t from_ms;
        uint64_t to_ms;
    } items[CLOCK_GAPS_MAX];
    uint64_t count; // of all gaps so far
};

// Note that the word had `from_ms` until `to_ms`.
static inline void
clock_gaps_note(struct clock_gaps *gaps, uint64_t from_ms, uint64_t to_ms, uint64_t tick_ms)
{
    if (to_ms > from_ms + tick_ms + CLOCK_GAP_MS) {
        const size_t at = gaps->count++ % CLOCK_GAPS_MAX;
        gaps->items[at].from_ms = from_ms;
        gaps->items[at].to_ms = to_ms;
    }
}

// Return how much later than `read_ms` the word may have been read with that value.
static inline uint64_t clock_gaps_error_ms(const struct clock_gaps *gaps, uint64_t read_ms)
{
    const uint64_t known = gaps->count < CLOCK_GAPS_MAX ? gaps->count : CLOCK_GAPS_MAX;
    for (size_t i = 0; i < known; i++) {
        if (gaps->items[i].from_ms == read_ms) {
            return gaps->items[i].to_ms - read_ms;
        }
    }
    return 0;
}
