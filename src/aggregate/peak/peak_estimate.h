// SPDX-License-Identifier: MIT
// peak_estimate: the live bytes of a program of which not every block was recorded, and how far
// they may be from the truth.
//
//   counted    what all recorded blocks that are alive stand for (Horvitz and Thompson): right on
//              average, for each stack; one block that stands for many makes it jump
//   followed   recorded blocks, each as one, and what was left out and is alive: known to a grain
//              for each thread (session/sampler.h)
//   lost       left out, and nobody follows it: how many of these blocks are alive is known, for
//              their frees come and fit no block; their bytes are estimated by their mean
//
// While nothing is lost, live = followed, and the highest of it is the peak: no chance is in it.
// (The highest of `counted` would be too high, for a maximum picks the moments at which the
// estimate errs upwards.) Otherwise there are two estimates,
//
//   followed + lost     off by a fifth of what is lost, say: survivors may be larger than the mean
//   counted             off by its standard error, the root of v = sum over the recorded blocks
//                       that are alive of w * (w - 1) * size^2, w being what each stands for
//
// and live is their mean, weighted by the inverse squares of these errors. The moment of the peak
// is then chosen by what depends little on chance, so two standard errors of `counted` cover the
// truth in 95 of 100 recordings, as does what is lost: the smaller of the two is stated.
// Context: H, one thread; no allocation.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// Of one process, or of all. Also a change of that: integers wrap.
struct left_out_sums {
    uint64_t known_bytes; // left out, alive and followed
    uint64_t lost_blocks;
    uint64_t lost_bytes;
    uint64_t stand_in_bytes; // what recorded blocks stand for beside themselves
    double variance;         // of the counted bytes
};

struct peak_estimate {
    struct left_out_sums now; // of all processes that run
    uint64_t grain_bytes;     // of all threads
    uint64_t upper_bytes;     // the highest that the truth may have been
    uint64_t error_at_peak;
    uint64_t counted_at_peak;
    double variance_at_peak;
    bool is_there; // something was left out
};

struct live_estimate {
    uint64_t bytes;
    uint64_t error_bytes; // without the grain
};

// The variance that `bytes` of one block bring which stands for `weight` blocks.
static inline double peak_estimate_variance(uint64_t bytes, uint32_t weight)
{
    return (double)weight * (double)(weight - 1) * (double)bytes * (double)bytes;
}

void left_out_sums_add(struct left_out_sums *sums, const struct left_out_sums *change);

// The change when `count` lost blocks turn out to have been freed.
struct left_out_sums left_out_sums_freed(const struct left_out_sums *sums, uint64_t count);

// What is alive. `waiting`: frees that have come and may be of lost blocks.
struct live_estimate
live_estimate_of(const struct left_out_sums *sums, uint64_t counted_bytes, uint64_t waiting);

// Looks at an estimate of all processes. `is_peak`: it is the highest so far.
void peak_estimate_look(struct peak_estimate *estimate,
                        const struct live_estimate *live,
                        uint64_t counted_bytes,
                        bool is_peak);

// The standard error of what the stacks held at the peak.
uint64_t peak_estimate_standard_error(const struct peak_estimate *estimate);

// How much lower the true peak may be than peak_bytes, and how much higher; order apart.
uint64_t peak_estimate_below(const struct peak_estimate *estimate);
uint64_t peak_estimate_above(const struct peak_estimate *estimate, uint64_t peak_bytes);
