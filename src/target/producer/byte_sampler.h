// SPDX-License-Identifier: MIT
// byte_sampler: chooses the blocks to record with `cairn record --sample=BYTES`, and while the
// recorder does not keep up or has too little memory (session/books/sampling_level.h).
//
//   allocated bytes   |--16--|--200--|-------- 5000 --------|-24-|      each block is size + 1 long
//   moments                                     x                       -> this block is looked at
//
// A block is to be chosen with the probability 1 / w; w: its weight (block_weight). Moments are a
// Poisson process on the line of all bytes that the thread allocates: their distances are
// exponential, with a mean m of 9/16 of the interval. A block of `length` bytes contains a moment
// with the probability 1 - exp(-length / m), which is at least 1 / w. So one that does is chosen
// with the rest of that probability. One with w = 1 is always chosen. The process has no memory:
// after a block with a moment the distance to the next one is drawn anew.
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
#include "session/books/sampling_level.h"
#include "session/layout.h"

struct byte_sampler {
    uint64_t next; // the first position of a block with a moment
    uint64_t random;
    uint64_t interval_bytes; // 0: every block is chosen
};

// Initialize `s` for a thread whose lane is `lane`. `seed` should differ between threads.
void byte_sampler_init(struct byte_sampler *s,
                       const struct lane_header *lane,
                       uint64_t interval_bytes,
                       uint64_t seed);

// Continue with another interval. Whether it changes must not depend on the next moment.
void byte_sampler_set_interval(struct byte_sampler *s,
                               const struct lane_header *lane,
                               uint64_t interval_bytes);

// Return whether an allocated block is chosen, and count it if not.
bool byte_sampler_chooses(struct byte_sampler *s, struct lane_header *lane, uint64_t size_bytes);

// Draw the distance to the next moment.
void byte_sampler_draw(struct byte_sampler *s, const struct lane_header *lane);

// Return -ln(random / 2^64) * mean, rounded down; `random` 0 counts as 1. The logarithm has an
// absolute error below 2^-31. mean < 2^32.
uint64_t byte_sampler_exponential(uint64_t random, uint64_t mean);

// Return whether a block with a moment, and a weight above 1, is chosen.
bool byte_sampler_keeps(uint64_t random, uint64_t interval_bytes, uint64_t size_bytes);

// Return the distance to the next moment, or to the end of the lengths with a weight: smaller
// blocks are not chosen.
ALWAYS_INLINE uint64_t byte_sampler_budget(const struct byte_sampler *s,
                                           const struct lane_header *lane)
{
    // Relaxed: our own counters.
    const uint64_t position =
        atomic_load_explicit(&lane->unsampled_bytes, memory_order_relaxed) +
        atomic_load_explicit(&lane->unsampled_allocations, memory_order_relaxed);
    const uint64_t distance = s->next > position ? s->next - position : 0;
    const uint64_t most = block_weight_length(s->interval_bytes);
    return distance < most ? distance : most;
}

// Count an allocated block that is not chosen.
ALWAYS_INLINE void byte_sampler_count(struct lane_header *lane, uint64_t size_bytes)
{
    arch_own_counter_add(&lane->unsampled_bytes, size_bytes);
    arch_own_counter_add(&lane->unsampled_allocations, 1);
}
