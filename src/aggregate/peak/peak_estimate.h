// SPDX-License-Identifier: MIT
// peak_estimate: estimates live bytes and their error when the memory budget leaves blocks out.
//
//   counted    recorded live blocks times their sampling weights (Horvitz and Thompson): unbiased
//              for each stack; one block with a large weight makes it jump
//   recorded   the recorded live blocks, each as one
//   lost       blocks that were left out: the number of live ones is known, because their frees
//              arrive and match no block; their mean size estimates their bytes
//
// (The maximum of `counted` would be too high, because it picks the moments at which the estimate
// errs upwards.) There are two estimates,
//
//   recorded + lost     error: a fifth of the lost bytes, as survivors may be larger than the mean
//   counted             its standard error, the root of v = sum over the recorded live blocks of
//                       w * (w - 1) * size^2; w: sampling weight of the block
//
// and live is their mean, weighted by the inverse squares of these errors. The moment of the peak
// then depends little on chance, so two standard errors of `counted` cover the truth in 95 of 100
// recordings, as the lost bytes do. The smaller of the two is reported.
// Context: H, one thread; no allocation.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// Sums of one process or of all, or a change of them: integers wrap.
struct unsampled_sums {
    uint64_t lost_blocks;
    uint64_t lost_bytes;
    uint64_t represented_bytes; // blocks that recorded ones stand for, themselves excluded
    double variance;            // of the counted bytes
};

struct peak_estimate {
    struct unsampled_sums now; // of all running processes
    uint64_t upper_bytes;      // upper bound of the true live bytes
    uint64_t error_at_peak;
    double variance_at_peak;
    bool is_there; // blocks are unsampled
};

struct live_estimate {
    uint64_t bytes;
    uint64_t error_bytes;
};

// Return the variance that one block of `bytes` with the sampling weight `weight` adds.
static inline double peak_estimate_variance(uint64_t bytes, uint32_t weight)
{
    return (double)weight * (double)(weight - 1) * (double)bytes * (double)bytes;
}

void unsampled_sums_add(struct unsampled_sums *sums, const struct unsampled_sums *change);

// Return the change when `count` lost blocks turn out to have been freed.
struct unsampled_sums unsampled_sums_freed(const struct unsampled_sums *sums, uint64_t count);

// Estimate the live bytes. `waiting`: frees that have arrived and may concern lost blocks.
struct live_estimate
live_estimate_of(const struct unsampled_sums *sums, uint64_t counted_bytes, uint64_t waiting);

// Take an estimate of all processes into the bounds. `is_peak`: it is the highest so far.
void peak_estimate_update(struct peak_estimate *estimate,
                          const struct live_estimate *live,
                          bool is_peak);

// Return the standard error of the rows' bytes at the peak.
uint64_t peak_estimate_standard_error(const struct peak_estimate *estimate);

// Return how much lower the true peak may be, and how much higher than peak_bytes. The order of
// events adds its own error.
uint64_t peak_estimate_below(const struct peak_estimate *estimate);
uint64_t peak_estimate_above(const struct peak_estimate *estimate, uint64_t peak_bytes);
