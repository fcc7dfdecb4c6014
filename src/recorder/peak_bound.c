// SPDX-License-Identifier: MIT
// peak_bound: see the header.
#include "recorder/peak_bound.h"

void peak_bound_init(struct peak_bound *bound)
{
    *bound = (struct peak_bound){.serial = 1, .actors = PEAK_NOBODY, .dead = PEAK_NOBODY};
}

static uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

// As high as it is counted: what was seen of it, or a limit that was higher.
static int64_t counted_bytes(const struct lane_swing *swing)
{
    return swing->limit_bytes > swing->highest_bytes ? swing->limit_bytes : swing->highest_bytes;
}

// How much higher than that a lane may have been.
static uint64_t
above_swing(const struct lane_swing *swing, uint64_t rise_bytes, uint64_t held_bytes)
{
    const uint64_t max = INT64_MAX / 4; // what is more is a lie
    if (rise_bytes > max || held_bytes > max) {
        return 0;
    }
    const int64_t risen = (int64_t)((uint64_t)swing->base_bytes + rise_bytes);
    const int64_t held = (int64_t)((uint64_t)swing->highest_bytes + held_bytes);
    const int64_t limit = risen < held ? risen : held;
    const int64_t counted = counted_bytes(swing);
    return limit > counted ? (uint64_t)limit - (uint64_t)counted : 0;
}

void peak_bound_rise(struct peak_bound *bound,
                     struct lane_swing *swing,
                     uint64_t rise_bytes,
                     uint64_t held_bytes)
{
    if (!bound->is_shared) {
        return;
    }
    peak_bound_change(bound, swing, 0);
    const uint64_t above = above_swing(swing, rise_bytes, held_bytes);
    if (above > 0) {
        bound->unseen_bytes += above;
        swing->limit_bytes = (int64_t)((uint64_t)counted_bytes(swing) + above);
    }
}

void peak_bound_clear_open(struct peak_bound *bound)
{
    bound->open_count = 0;
    bound->open_rest_bytes = 0;
}

void peak_bound_add_open(struct peak_bound *bound,
                         const struct lane_swing *swing,
                         uint64_t rise_bytes,
                         uint64_t held_bytes)
{
    if (!bound->is_shared) {
        return;
    }
    if (bound->open_count == PEAK_OPENS_MAX) {
        bound->open_rest_bytes += held_bytes < UINT32_MAX ? held_bytes : UINT32_MAX;
        return;
    }
    bound->opens[bound->open_count++] =
        (struct peak_open){.swing = swing, .rise_bytes = rise_bytes, .held_bytes = held_bytes};
}

void peak_bound_forget(struct peak_bound *bound, const struct lane_swing *swing)
{
    for (uint32_t i = 0; i < bound->open_count; i++) {
        if (bound->opens[i].swing == swing) {
            bound->opens[i] = bound->opens[--bound->open_count];
            return;
        }
    }
}

static uint64_t upper_of_tick(const struct peak_bound *bound)
{
    uint64_t upper =
        bound->start_bytes + bound->rise_bytes + bound->unseen_bytes + bound->open_rest_bytes;
    for (uint32_t i = 0; i + bound->new_ghosts < bound->ghost_count; i++) {
        upper += bound->ghosts[i].bytes; // new ones are in start_bytes
    }
    for (uint32_t i = 0; i < bound->open_count; i++) {
        const struct lane_swing swing = peak_bound_swing(bound, bound->opens[i].swing);
        upper += above_swing(&swing, bound->opens[i].rise_bytes, bound->opens[i].held_bytes);
    }
    return upper;
}

static uint64_t lower_of_tick(const struct peak_bound *bound, uint64_t live_bytes)
{
    // Who ended did so after all that it did itself.
    const bool is_dead_alone = bound->dead != PEAK_SEVERAL && bound->dead == bound->actors;
    if (bound->lane_count <= 1 && (bound->dead == PEAK_NOBODY || is_dead_alone)) {
        return bound->start_bytes + bound->rise_bytes;
    }
    return max_u64(bound->start_bytes, live_bytes + (is_dead_alone ? bound->dead_bytes : 0));
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
    bound->actors = PEAK_NOBODY;
    bound->dead = PEAK_NOBODY;
    bound->dead_bytes = 0;
    bound->new_ghosts = 0;
}

void peak_bound_begin_tick(struct peak_bound *bound, uint64_t tick_ms)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < bound->ghost_count; i++) {
        if (tick_ms <= bound->ghosts[i].until_ms) {
            bound->ghosts[kept++] = bound->ghosts[i];
        }
    }
    bound->ghost_count = kept;
}

static void add_ghost(struct peak_bound *bound, uint64_t bytes, uint64_t until_ms)
{
    if (bound->ghost_count < PEAK_GHOSTS_MAX) {
        bound->ghosts[bound->ghost_count++] =
            (struct peak_ghost){.bytes = bytes, .until_ms = until_ms};
        bound->new_ghosts++;
        return;
    }
    struct peak_ghost *last = &bound->ghosts[PEAK_GHOSTS_MAX - 1];
    last->bytes += bytes;
    last->until_ms = max_u64(last->until_ms, until_ms);
    bound->new_ghosts = 0; // all count: an upper bound all the same
}

void peak_bound_leave(struct peak_bound *bound, uint32_t owner, uint64_t bytes, uint64_t until_ms)
{
    bound->dead = peak_bound_and(bound->dead, owner);
    bound->dead_bytes += bytes;
    if (until_ms > 0 && bytes > 0) {
        add_ghost(bound, bytes, until_ms);
    }
}

uint64_t peak_bound_error(const struct peak_bound *bound, uint64_t peak_bytes, uint64_t live_bytes)
{
    uint64_t upper = max_u64(bound->upper_bytes, upper_of_tick(bound));
    uint64_t lower = max_u64(bound->lower_bytes, lower_of_tick(bound, live_bytes));
    uint64_t above = upper > peak_bytes ? upper - peak_bytes : 0;
    uint64_t below = peak_bytes > lower ? peak_bytes - lower : 0;
    return max_u64(above, below);
}
