// SPDX-License-Identifier: MIT
// peak_spread: how far the peak of a sampled recording may be from the true one by chance.
//
// A block of `size` bytes that was recorded with the probability 1/w counts w * size. The sum of
// all that is live is right on average, at every moment, and the expected square of its error there
// is estimated, without bias, by
//
//     v = sum over the recorded blocks that are live of  w * (w - 1) * size^2
//
// (Horvitz and Thompson). It is kept up to date as blocks come and go; its root, s, is the sum's
// standard error. The peak is the highest of such sums, so it errs to the high side. With
// P the true peak, E the error of the sum and t* where the sum was highest:
//
//     peak - P <= E(t*)      since P is at least what was truly live at t*
//     P - peak <= -E(t0)     t0 where the true sum was highest
//
// E(t0) is an error like any other: 2 s (at t0) covers it 39 times of 40. E(t*) is chosen, the
// highest of as many independent errors as there are sets of sampled blocks that followed one
// another: m, by variance that came per variance that was there. The highest of m is below (2 +
// sqrt(2 ln m)) s at least as often. Context: H, one thread; only sampled blocks cost anything.
#pragma once

#include <stdint.h>

struct peak_spread {
    double variance;    // of the live bytes, now
    double renewed;     // all that was ever added to it
    double at_peak;     // what it was at the peak
    double upper_bytes; // the highest that the truth may have been
};

// The variance that `bytes` of one block bring which stands for `weight` blocks.
static inline double peak_spread_of(uint64_t bytes, uint32_t weight)
{
    return (double)weight * (double)(weight - 1) * (double)bytes * (double)bytes;
}

// A block comes, or goes.
void peak_spread_add(struct peak_spread *spread, double variance);
void peak_spread_remove(struct peak_spread *spread, double variance);

// Looks at the sum; at the end of each tick.
void peak_spread_look(struct peak_spread *spread, uint64_t live_bytes);

// The standard error of the sum that was the peak.
uint64_t peak_spread_standard_error(const struct peak_spread *spread);

// |true peak - peak_bytes| is at most this, in 95 of 100 recordings; order within ticks apart.
uint64_t peak_spread_error(const struct peak_spread *spread, uint64_t peak_bytes);
