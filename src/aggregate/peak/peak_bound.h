// SPDX-License-Identifier: MIT
// peak_bound: an upper bound of the live bytes.
//
// The aggregator reads the events of all threads in their order (stamp.h), so it knows the sum of
// live bytes at any moment. Its maximum is the peak, which the program certainly reached (but for
// early blocks, see below). A block may have been in the allocator a little longer, because a
// thread may be preempted
//
//     between the stamp of a free and the free:      the freed block may still be there
//     between an allocation and its stamp:           the next block may be there already
//
// So each thread counts with one block more (its flight). From a free until the thread's next event
// this is the freed block. From an event until an allocation it is the allocated block, whose size
// is known only then; so the bound keeps the latest heights (steps). Before the thread's first
// event this interval begins with the last event of the previous thread with its stack, or with its
// process. No time limits the interval, because a thread may be without a processor for any time.
// It ends when the recorder sees the thread asleep, which it is not between an event and its stamp,
// and the next one begins then.
//
// A block of a signal handler may have a stamp before that of the event that it interrupted. It is
// early until its thread's next event: the true height may be lower by it.
//
// The heap of a process that was found dead without a record of its exit may have lived until that
// moment (a ghost).
//
// Flights matter to the allocator. In the program's own order, by its stamps, no block is in
// flight, and only early blocks and ghosts of processes leave a doubt (order_upper_bytes).
//
// While one thread records, nothing has a stamp, and the peak is exact.
// Context: H, one thread; no allocation.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/minmax.h"

enum {
    PEAK_GHOSTS_MAX = 8,  // beyond it the latest two are merged
    PEAK_STEPS_MAX = 128, // beyond it the two that differ least are merged
    PEAK_STEP_SHIFT = 7,  // two steps differ by at least a 128th
};

// The heap of a process that may have ended already, or the latest events of a thread that may have
// finished them already.
struct peak_ghost {
    uint64_t bytes;
    uint64_t process_bytes; // of `bytes`: of a process, not of a thread's flight
    uint64_t early_bytes;
    uint64_t until_stamp; // its end at the latest
};

// The latest event of one thread.
struct peak_flight {
    uint64_t stamp;
    uint64_t bytes;       // bytes that it freed, less what it has allocated at the same stamp
    uint64_t early_bytes; // that it has allocated at this stamp, after an event that had it
};

// The height was at most height_bytes since some moment.
struct peak_step {
    uint64_t stamp; // latest moment of this height
    uint64_t height_bytes;
};

struct peak_bound {
    uint64_t upper_bytes;
    uint64_t order_upper_bytes; // the same without flights
    uint64_t flight_bytes;      // of all threads
    uint64_t early_bytes;       // of all threads and ghosts
    uint64_t latest_stamp;      // of the counted events
    uint64_t peak_stamp;        // of the peak
    uint64_t below_bytes;       // the true peak may be lower by so much
    struct peak_ghost ghosts[PEAK_GHOSTS_MAX];
    uint32_t ghost_count;
    uint32_t step_count;
    struct peak_step steps[PEAK_STEPS_MAX]; // ever later, ever lower
};

// Begin to note an allocation of `bytes`, before the peak that it may set. peak_bound_allocated
// follows.
void peak_bound_allocating(struct peak_bound *bound,
                           struct peak_flight *flight,
                           uint64_t stamp,
                           uint64_t bytes);

// Note an allocation of `bytes`, after which live_bytes are live. Events without a stamp have no
// effect.
void peak_bound_allocated(struct peak_bound *bound,
                          struct peak_flight *flight,
                          uint64_t stamp,
                          uint64_t bytes,
                          uint64_t live_bytes);

// Note that a thread is about to free a block of `bytes`.
void peak_bound_freed(struct peak_bound *bound,
                      struct peak_flight *flight,
                      uint64_t stamp,
                      uint64_t bytes,
                      uint64_t live_bytes);

// Note that a block without a stamp is live from now on.
void peak_bound_joined(struct peak_bound *bound, uint64_t stamp, uint64_t live_bytes);

// Note that the thread has finished its latest events by `stamp`, which may be later than events
// that are noted from now on. Its next event begins then.
void peak_bound_rested(struct peak_bound *bound, struct peak_flight *flight, uint64_t stamp);

// Note that the thread has finished its latest events.
void peak_bound_landed(struct peak_bound *bound, struct peak_flight *flight);

// Begin `flight` of a thread that began when the thread of `before` had ended.
void peak_bound_followed(struct peak_bound *bound,
                         struct peak_flight *flight,
                         const struct peak_flight *before);

// Note a new peak.
static inline void peak_bound_peaked(struct peak_bound *bound)
{
    bound->peak_stamp = bound->latest_stamp;
    bound->below_bytes = bound->early_bytes;
}

// Note that a process left the sum with `bytes`. It may have lived until `until_stamp`; 0: the
// moment of its end is known.
void peak_bound_leave(struct peak_bound *bound,
                      uint64_t bytes,
                      uint64_t until_stamp,
                      uint64_t live_bytes);

// Return how much higher or lower than `peak_bytes` the true peak may be; and how much higher in
// the program's own order.
static inline uint64_t peak_bound_above(const struct peak_bound *bound, uint64_t peak_bytes)
{
    return bound->upper_bytes > peak_bytes ? bound->upper_bytes - peak_bytes : 0;
}
static inline uint64_t peak_bound_order_above(const struct peak_bound *bound, uint64_t peak_bytes)
{
    return bound->order_upper_bytes > peak_bytes ? bound->order_upper_bytes - peak_bytes : 0;
}
static inline uint64_t peak_bound_below(const struct peak_bound *bound, uint64_t peak_bytes)
{
    return min_u64(bound->below_bytes, peak_bytes);
}
