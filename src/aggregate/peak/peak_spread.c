// SPDX-License-Identifier: MIT
// peak_spread: see the header.
#include "aggregate/peak/peak_spread.h"

#include <math.h>

#define SIGMAS 2.0

void peak_spread_add(struct peak_spread *spread, double variance)
{
    spread->variance += variance;
    spread->renewed += variance;
}

void peak_spread_remove(struct peak_spread *spread, double variance)
{
    // Rounding: what is left of very much may be a little less than nothing.
    spread->variance = spread->variance > variance ? spread->variance - variance : 0;
}

void peak_spread_look(struct peak_spread *spread, uint64_t live_bytes)
{
    const double upper_bytes = (double)live_bytes + SIGMAS * sqrt(spread->variance);
    if (upper_bytes > spread->upper_bytes) {
        spread->upper_bytes = upper_bytes;
    }
}

// Sizes that a hostile program makes up can be anything.
static uint64_t whole_bytes(double bytes)
{
    const double max = (double)(INT64_MAX / 2);
    return bytes < max ? (uint64_t)ceil(bytes) : (uint64_t)max;
}

uint64_t peak_spread_standard_error(const struct peak_spread *spread)
{
    return whole_bytes(sqrt(spread->at_peak));
}

// How far the peak may be above the truth, for it was chosen.
static double selected_bytes(const struct peak_spread *spread, double peak_bytes)
{
    if (spread->at_peak <= 0) {
        return 0;
    }
    const double sets = spread->renewed > spread->at_peak ? spread->renewed / spread->at_peak : 1;
    const double bytes = (SIGMAS + sqrt(2 * log(sets))) * sqrt(spread->at_peak);
    return bytes < peak_bytes ? bytes : peak_bytes;
}

uint64_t peak_spread_error(const struct peak_spread *spread, uint64_t peak_bytes)
{
    const double below = selected_bytes(spread, (double)peak_bytes);
    const double above = spread->upper_bytes - (double)peak_bytes;
    return whole_bytes(above > below ? above : below);
}
