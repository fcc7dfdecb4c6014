// SPDX-License-Identifier: MIT
#include "aggregate/peak/peak_estimate.h"

#include <math.h>

#define SIGMAS          2.0
#define LOST_MEAN_ERROR 0.2 // of lost bytes that are estimated by their mean

void unsampled_sums_add(struct unsampled_sums *sums, const struct unsampled_sums *change)
{
    sums->lost_blocks += change->lost_blocks;
    sums->lost_bytes += change->lost_bytes;
    sums->represented_bytes += change->represented_bytes;
    sums->variance += change->variance;
}

// Convert; a hostile program may invent any sizes.
static uint64_t whole_bytes(double bytes)
{
    const double max = (double)(INT64_MAX / 4);
    return bytes <= 0 ? 0 : bytes < max ? (uint64_t)bytes : (uint64_t)max;
}

static double root_of(double variance)
{
    return variance > 0 ? sqrt(variance) : 0; // rounding may leave a little less than zero
}

static uint64_t share_of(const struct unsampled_sums *sums, uint64_t count)
{
    const double share = (double)count / (double)sums->lost_blocks;
    return count < sums->lost_blocks ? whole_bytes((double)sums->lost_bytes * share)
                                     : sums->lost_bytes;
}

struct unsampled_sums unsampled_sums_freed(const struct unsampled_sums *sums, uint64_t count)
{
    if (sums->lost_blocks == 0) {
        return (struct unsampled_sums){0};
    }
    const uint64_t freed = count < sums->lost_blocks ? count : sums->lost_blocks;
    return (struct unsampled_sums){.lost_blocks = -freed, .lost_bytes = -share_of(sums, freed)};
}

struct live_estimate
live_estimate_of(const struct unsampled_sums *sums, uint64_t counted_bytes, uint64_t waiting)
{
    const uint64_t recorded_bytes =
        counted_bytes > sums->represented_bytes ? counted_bytes - sums->represented_bytes : 0;
    if (sums->lost_blocks <= waiting) {
        return (struct live_estimate){.bytes = recorded_bytes};
    }
    const double lost = (double)share_of(sums, sums->lost_blocks - waiting);
    const double variance = sums->variance > 0 ? sums->variance : 0;
    const double doubt = LOST_MEAN_ERROR * LOST_MEAN_ERROR * lost * lost;
    const double by_mean = (double)recorded_bytes + lost;
    const double weight = doubt > 0 ? doubt / (doubt + variance) : 0; // of the counted bytes
    const double mean = by_mean + weight * ((double)counted_bytes - by_mean);
    const double estimate = mean > (double)recorded_bytes ? mean : (double)recorded_bytes;
    const double spread = SIGMAS * root_of(variance) + fabs((double)counted_bytes - estimate);
    const double most_lost = fmax(lost, estimate - (double)recorded_bytes);
    return (struct live_estimate){.bytes = whole_bytes(estimate),
                                  .error_bytes = whole_bytes(fmin(most_lost, spread))};
}

void peak_estimate_update(struct peak_estimate *estimate,
                          const struct live_estimate *live,
                          bool is_peak)
{
    const uint64_t error_bytes = live->error_bytes;
    const uint64_t upper_bytes = live->bytes + error_bytes;
    if (upper_bytes > estimate->upper_bytes) {
        estimate->upper_bytes = upper_bytes;
    }
    if (is_peak) {
        estimate->error_at_peak = error_bytes;
        estimate->variance_at_peak = estimate->now.variance;
    }
}

uint64_t peak_estimate_standard_error(const struct peak_estimate *estimate)
{
    return whole_bytes(ceil(root_of(estimate->variance_at_peak)));
}

uint64_t peak_estimate_below(const struct peak_estimate *estimate)
{
    return estimate->error_at_peak;
}

uint64_t peak_estimate_above(const struct peak_estimate *estimate, uint64_t peak_bytes)
{
    return estimate->upper_bytes > peak_bytes ? estimate->upper_bytes - peak_bytes : 0;
}
