// SPDX-License-Identifier: MIT
// growth_level: the level of a history: its median, its noise, and whether it was as high before.
// Context: H; pure.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/growth/growth_history.h"

struct level {
    double median;
    double noise; // the median distance from the median
};

// The median of `count` values, at least one. They are sorted.
double level_middle(uint64_t *values, size_t count);

// `scratch` has room for the slices.
struct level level_of(const uint64_t *live_bytes, size_t first, size_t end, uint64_t *scratch);

// Whether the level rose from `floor_bytes` to the end's in the slices from `first` on, was about
// as high before them and had fallen again, after a high time that is not much shorter.
bool level_has_come_down(const struct growth_history *h, size_t first, uint64_t floor_bytes);

// How often the level rose from its lowest quarter to its highest before slice `end`, if it was
// there at most half as high as at its highest; else 0.
size_t level_count_cycles(const struct growth_history *h, size_t end);

// Whether the level falls to an eighth of its highest.
bool level_is_deep(const struct growth_history *h);

// The first slice from which on the level was never below `bytes` again.
size_t level_held_from(const struct growth_history *h, uint64_t bytes);

// Of a level that rises and falls: GROWTH_BURSTS if it is low for two thirds of the time, else
// GROWTH_SAWTOOTH.
enum growth_class level_cycles(const struct growth_history *h);
