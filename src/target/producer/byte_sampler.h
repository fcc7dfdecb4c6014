// SPDX-License-Identifier: MIT
// byte_sampler: chooses the blocks to record with `cairn record --sample=BYTES`, and with
// --overflow=sample while the recorder does not keep up (sampler.h).
//
//   allocated bytes   |--16--|--200--|-------- 5000 --------|-24-|      each block is size + 1 long
//   moments                                     x                       -> this block is chosen
//
// Moments are a Poisson process on the line of all bytes that the thread allocates: their distances
// are exponential with the mean BYTES. A block that contains a moment is chosen, which has the
// probability 1 - exp(-(size + 1) / BYTES). The 1 makes blocks of 0 bytes possible, as in tcmalloc.
// The recorder knows the size and BYTES, and gives the block the inverse of that probability as its
// weight (aggregate/peak/byte_weight.h). The process has no memory: after a chosen block the
// distance to the next moment is drawn anew.
//
// All other blocks cost two additions, and a subtraction from the budget, which the thread keeps
// apart (session/thread_pass.h). The counters are in the lane, so the recorder can read them at any
// moment, also after the thread was killed, and the totals are exact. The position is their sum.
// Each addition is one instruction, so no guard is needed against signal handlers.
// Context: T, the lane's thread and its handlers; no floating point; errno is kept.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "own_counter_arch.h"
#include "session/layout.h"

struct byte_sampler {
    uint64_t next; // the first position of a block that is chosen
    uint64_t random;
    uint64_t mean_bytes; // 0: every block is chosen
};

// Initialize `s` for a thread whose lane is `lane`. `seed` should differ between threads.
void byte_sampler_init(struct byte_sampler *s,
                       const struct lane_header *lane,
                       uint64_t mean_bytes,
                       uint64_t seed);

// Continue with another mean. Whether it changes must not depend on the next moment.
void byte_sampler_set_mean(struct byte_sampler *s,
                           const struct lane_header *lane,
                           uint64_t mean_bytes);

// Draw the distance to the next moment.
void byte_sampler_draw(struct byte_sampler *s, const struct lane_header *lane);

// Return -ln(random / 2^64) * mean, rounded down; `random` 0 counts as 1. The logarithm has an
// absolute error below 2^-31. mean < 2^32.
uint64_t byte_sampler_exponential(uint64_t random, uint64_t mean);

// Return the distance to the next moment: smaller blocks are not chosen.
ALWAYS_INLINE uint64_t byte_sampler_budget(const struct byte_sampler *s,
                                           const struct lane_header *lane)
{
    // Relaxed: our own counters.
    const uint64_t position =
        atomic_load_explicit(&lane->unsampled_bytes, memory_order_relaxed) +
        atomic_load_explicit(&lane->unsampled_allocations, memory_order_relaxed);
    return s->next > position ? s->next - position : 0;
}

// Count an allocated block that is not chosen.
ALWAYS_INLINE void byte_sampler_count(struct lane_header *lane, uint64_t size_bytes)
{
    arch_own_counter_add(&lane->unsampled_bytes, size_bytes);
    arch_own_counter_add(&lane->unsampled_allocations, 1);
}

// Count an allocated block and return true, unless the block is chosen.
ALWAYS_INLINE bool
byte_sampler_passes(const struct byte_sampler *s, struct lane_header *lane, uint64_t size_bytes)
{
    if (UNLIKELY(size_bytes >= byte_sampler_budget(s, lane))) {
        return false;
    }
    byte_sampler_count(lane, size_bytes);
    return true;
}
