// SPDX-License-Identifier: MIT
#include "profile/growth/growth_level.h"

#include <stdlib.h>
#include <string.h>

#include "base/minmax.h"
#include "base/order.h"

static int compare_levels(const void *left, const void *right)
{
    const uint64_t a = *(const uint64_t *)left;
    const uint64_t b = *(const uint64_t *)right;
    return order_u64(a, b);
}

double level_middle(uint64_t *values, size_t count)
{
    qsort(values, count, sizeof(*values), compare_levels);
    const size_t lower = (count - 1) / 2;
    const size_t upper = count / 2;
    return ((double)values[lower] + (double)values[upper]) / 2;
}

struct level level_of(const uint64_t *live_bytes, size_t first, size_t end, uint64_t *scratch)
{
    const size_t count = end - first;
    memcpy(scratch, live_bytes + first, count * sizeof(*live_bytes));
    struct level level = {.median = level_middle(scratch, count)};
    for (size_t i = 0; i < count; i++) {
        const double away = (double)live_bytes[first + i] - level.median;
        scratch[i] = (uint64_t)(away < 0 ? -away : away);
    }
    level.noise = level_middle(scratch, count);
    return level;
}

bool level_has_come_down(const struct growth_history *h, size_t first, uint64_t floor_bytes)
{
    const uint64_t growth = excess_u64(h->live_bytes[h->count - 1], floor_bytes);
    const uint64_t high = floor_bytes + growth / 2;
    const uint64_t low = floor_bytes + growth / 4;
    size_t longest = 0;
    size_t here = 0;
    bool was_high = false;
    for (size_t i = 0; i < first; i++) {
        here = h->live_bytes[i] > low ? here + 1 : 0;
        longest = here > longest ? here : longest;
        was_high |= h->live_bytes[i] >= high && h->live_bytes[i] > floor_bytes;
    }
    return was_high && h->count - first <= 2 * longest + 2 * h->step;
}

// The range of the level since it was not 0.
struct range {
    size_t first;
    uint64_t low;
    uint64_t high;
};

static struct range range_of(const struct growth_history *h)
{
    struct range range = {.low = UINT64_MAX};
    while (range.first + 1 < h->count && h->live_bytes[range.first] == 0) {
        range.first++;
    }
    for (size_t i = range.first; i < h->count; i++) {
        range.low = min_u64(range.low, h->live_bytes[i]);
        range.high = max_u64(range.high, h->live_bytes[i]);
    }
    return range;
}

size_t level_count_cycles(const struct growth_history *h, size_t end)
{
    const struct range range = range_of(h);
    const uint64_t quarter = (range.high - range.low) / 4;
    size_t cycles = 0;
    bool is_low = true;
    for (size_t i = range.first; i < end; i++) {
        if (is_low && h->live_bytes[i] >= range.high - quarter) {
            is_low = false;
            cycles++;
        } else if (h->live_bytes[i] <= range.low + quarter) {
            is_low = true;
        }
    }
    return range.low <= range.high / 2 ? cycles : 0;
}

bool level_is_deep(const struct growth_history *h)
{
    const struct range range = range_of(h);
    return range.low <= range.high / 8;
}

size_t level_held_from(const struct growth_history *h, uint64_t bytes)
{
    size_t from = h->count;
    while (from > 0 && h->live_bytes[from - 1] >= bytes) {
        from--;
    }
    return from;
}

enum growth_class level_cycles(const struct growth_history *h)
{
    const struct range range = range_of(h);
    size_t high_slices = 0;
    for (size_t i = range.first; i < h->count; i++) {
        high_slices += h->live_bytes[i] > range.low + (range.high - range.low) / 4;
    }
    return 3 * high_slices < h->count - range.first ? GROWTH_BURSTS : GROWTH_SAWTOOTH;
}
