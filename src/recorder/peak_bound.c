// SPDX-License-Identifier: MIT
// peak_bound: see the header.
#include "recorder/peak_bound.h"

void peak_bound_init(struct peak_bound *bound)
{
    *bound = (struct peak_bound){.serial = 1};
}

static uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t upper_of_tick(const struct peak_bound *bound)
{
    return bound->start_bytes + bound->rise_bytes + bound->unseen_bytes + bound->ghost_bytes +
           bound->tick_open_bytes;
}

static uint64_t lower_of_tick(const struct peak_bound *bound, uint64_t live_bytes)
{
    return bound->lane_count <= 1 ? bound->start_bytes + bound->rise_bytes
                                  : max_u64(bound->start_bytes, live_bytes);
}

void peak_bound_end_tick(struct peak_bound *bound, uint64_t live_bytes)
{
    bound->upper_bytes = max_u64(bound->upper_bytes, upper_of_tick(bound));
    bound->lower_bytes = max_u64(bound->lower_bytes, lower_of_tick(bound, live_bytes));
    bound->serial++;
    bound->start_bytes = live_bytes;
    bound->rise_bytes = 0;
    bound->unseen_bytes = 0;
    bound->lane_count = 0;
    bound->tick_open_bytes = bound->open_bytes;
}

void peak_bound_add_ghost(struct peak_bound *bound, uint64_t bytes, uint64_t until_ms)
{
    bound->ghost_bytes += bytes;
    bound->ghost_until_ms = max_u64(bound->ghost_until_ms, until_ms);
}

uint64_t peak_bound_error(const struct peak_bound *bound, uint64_t peak_bytes, uint64_t live_bytes)
{
    uint64_t upper = max_u64(bound->upper_bytes, upper_of_tick(bound));
    uint64_t lower = max_u64(bound->lower_bytes, lower_of_tick(bound, live_bytes));
    uint64_t above = upper > peak_bytes ? upper - peak_bytes : 0;
    uint64_t below = peak_bytes > lower ? peak_bytes - lower : 0;
    return max_u64(above, below);
}
