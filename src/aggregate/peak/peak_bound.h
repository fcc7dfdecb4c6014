// SPDX-License-Identifier: MIT
// peak_bound: how high the live bytes can have been at most.
//
// The aggregator sees the events of all threads in their order (stamp.h), and so knows the sum of
// what the program had at any moment: the highest is the peak, which was certainly reached. To the
// allocator a block may have been there a little longer, for a thread may be taken off its
// processor
//
//     between the stamp of a free and the free:      what it freed last may still be there
//     between an allocation and its stamp:           what it allocates next may be there already
//
// So each thread counts with one block more (its flight): what its latest event freed, until its
// next event; and, from its latest event until an allocation, what that allocates, which is known
// only then: therefore the latest heights are kept (steps). Before its first event that is since
// its process began: a thread holds nothing back (nursery.h) before it has sent a block. A thread
// that has not been heard of for PEAK_FLIGHT_MS is taken to be done with what it did.
//
// Besides there may be more than the aggregator knows: what a thread held back before others came
// (nursery.h), and the heap of a process that was found dead without having said when it ended, up
// to that moment (a ghost).
//
// While one thread records, nothing has a stamp, and the peak is exact. Context: H, one thread; no
// allocation.
#pragma once

#include <stdint.h>

#include "base/minmax.h"

enum {
    PEAK_FLIGHT_MS = 200,
    PEAK_GHOSTS_MAX = 8,  // beyond which the latest two become one
    PEAK_STEPS_MAX = 128, // beyond which the oldest two become one
    PEAK_STEP_SHIFT = 7,  // two steps differ by at least a 128th
};

// The heap of a process that may be gone already.
struct peak_ghost {
    uint64_t bytes;
    uint64_t until_stamp; // from then on it is
};

// One thread's latest event.
struct peak_flight {
    uint64_t stamp;
    uint64_t bytes; // what it freed
};

// From some moment on the height was at most this.
struct peak_step {
    uint64_t stamp; // of the latest moment at which it was as high
    uint64_t tick_ms;
    uint64_t height_bytes;
};

struct peak_bound {
    uint64_t upper_bytes;
    uint64_t flight_bytes; // of all threads
    uint64_t unseen_bytes; // held back by threads that were alone
    uint64_t now_ms;
    uint64_t latest_stamp; // of what was counted
    uint64_t peak_stamp;   // when the peak was reached
    uint64_t below_bytes;  // by so much it may have been lower
    struct peak_ghost ghosts[PEAK_GHOSTS_MAX];
    uint32_t ghost_count;
    uint32_t step_count;
    struct peak_step steps[PEAK_STEPS_MAX]; // ever later, ever lower
};

// A thread allocated a block of `bytes`; `live_bytes` are live since then. Events without a stamp
// are not for us.
void peak_bound_allocated(struct peak_bound *bound,
                          struct peak_flight *flight,
                          uint64_t stamp,
                          uint64_t bytes,
                          uint64_t live_bytes);

// A thread is about to free a block of `bytes`.
void peak_bound_freed(struct peak_bound *bound,
                      struct peak_flight *flight,
                      uint64_t stamp,
                      uint64_t bytes,
                      uint64_t live_bytes);

// A block that was held back is among the live ones from now on.
void peak_bound_joined(struct peak_bound *bound, uint64_t stamp, uint64_t live_bytes);

// At some moment there were `bytes` besides, it is not known when.
void peak_bound_besides(struct peak_bound *bound, uint64_t bytes, uint64_t live_bytes);

// What the thread freed last is gone.
void peak_bound_landed(struct peak_bound *bound, struct peak_flight *flight);

// There is a new peak.
static inline void peak_bound_peaked(struct peak_bound *bound)
{
    bound->peak_stamp = bound->latest_stamp;
    bound->below_bytes = 0;
}

// Time goes on.
void peak_bound_tick(struct peak_bound *bound, uint64_t now_ms);

// Threads hold so much back that has not been seen.
void peak_bound_unseen(struct peak_bound *bound, uint64_t bytes, uint64_t live_bytes);

// A process left the sum, in which it had `bytes`. It may have lived until `until_stamp`; 0: it is
// known when it ended.
void peak_bound_leave(struct peak_bound *bound,
                      uint64_t bytes,
                      uint64_t until_stamp,
                      uint64_t live_bytes);

// How much higher the true peak may be than `peak_bytes`, and how much lower.
static inline uint64_t peak_bound_above(const struct peak_bound *bound, uint64_t peak_bytes)
{
    return bound->upper_bytes > peak_bytes ? bound->upper_bytes - peak_bytes : 0;
}
static inline uint64_t peak_bound_below(const struct peak_bound *bound, uint64_t peak_bytes)
{
    return min_u64(bound->below_bytes, peak_bytes);
}
