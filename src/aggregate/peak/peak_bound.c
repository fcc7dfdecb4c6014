// SPDX-License-Identifier: MIT
#include "aggregate/peak/peak_bound.h"

#include <string.h>

#include "base/minmax.h"

// Bytes that may exist in addition to the live ones.
struct besides {
    uint64_t all_bytes;
    uint64_t order_bytes; // without flights
};

static struct besides besides(const struct peak_bound *bound)
{
    struct besides sum = {.all_bytes = bound->flight_bytes};
    for (uint32_t i = 0; i < bound->ghost_count; i++) {
        sum.all_bytes += bound->ghosts[i].bytes;
        sum.order_bytes += bound->ghosts[i].process_bytes;
    }
    return sum;
}

// Take a height into the upper bounds. Return it.
static uint64_t raise_upper(struct peak_bound *bound, uint64_t live_bytes)
{
    const struct besides sum = besides(bound);
    const uint64_t height_bytes = live_bytes + sum.all_bytes;
    bound->upper_bytes = max_u64(bound->upper_bytes, height_bytes);
    bound->order_upper_bytes = max_u64(bound->order_upper_bytes, live_bytes + sum.order_bytes);
    return height_bytes;
}

static void drop_step(struct peak_bound *bound, uint32_t i)
{
    bound->step_count--;
    memmove(bound->steps + i, bound->steps + i + 1,
            (bound->step_count - i) * sizeof(bound->steps[0]));
}

// Merge the two neighbours that differ least, in proportion.
static void merge_steps(struct peak_bound *bound)
{
    uint32_t least = 0;
    double least_part = 1;
    for (uint32_t i = 0; i + 1 < bound->step_count; i++) {
        const double height = (double)bound->steps[i].height_bytes;
        const double part = (height - (double)bound->steps[i + 1].height_bytes) / height;
        least = part < least_part ? i : least;
        least_part = part < least_part ? part : least_part;
    }
    bound->steps[least + 1].height_bytes = bound->steps[least].height_bytes;
    drop_step(bound, least);
}

// Add a step: from the latest stamp on, the height is height_bytes. A step that is hardly higher
// extends until now, and two merged steps have the height of the earlier one: steps may be too
// high, never too low.
static void add_step(struct peak_bound *bound, uint64_t height_bytes)
{
    struct peak_step step = {.stamp = bound->latest_stamp, .height_bytes = height_bytes};
    while (bound->step_count > 0 &&
           bound->steps[bound->step_count - 1].height_bytes <= height_bytes) {
        bound->step_count--;
    }
    if (bound->step_count > 0) {
        const uint64_t last_bytes = bound->steps[bound->step_count - 1].height_bytes;
        if (last_bytes - height_bytes <= last_bytes >> PEAK_STEP_SHIFT) {
            step.height_bytes = last_bytes;
            bound->step_count--;
        }
    }
    if (bound->step_count == PEAK_STEPS_MAX) {
        merge_steps(bound);
    }
    bound->steps[bound->step_count++] = step;
}

static void forget_ghosts(struct peak_bound *bound)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < bound->ghost_count; i++) {
        if (bound->latest_stamp <= bound->ghosts[i].until_stamp) {
            bound->ghosts[kept++] = bound->ghosts[i];
        } else {
            bound->early_bytes -= bound->ghosts[i].early_bytes;
        }
    }
    bound->ghost_count = kept;
}

static void note_height(struct peak_bound *bound, uint64_t live_bytes)
{
    const uint64_t height_bytes = raise_upper(bound, live_bytes);
    // Mostly the latest step goes on, and is hardly higher.
    struct peak_step *last = bound->steps + bound->step_count - 1;
    if (bound->step_count > 0 && last->height_bytes >= height_bytes &&
        last->height_bytes - height_bytes <= last->height_bytes >> PEAK_STEP_SHIFT) {
        last->stamp = bound->latest_stamp;
        return;
    }
    add_step(bound, height_bytes);
}

static void advance_bound(struct peak_bound *bound, uint64_t stamp)
{
    bound->latest_stamp = max_u64(stamp, bound->latest_stamp);
    if (bound->ghost_count > 0) {
        forget_ghosts(bound);
    }
}

// Return the first step that lasts until `stamp` or longer. It is one of the latest.
static uint32_t find_step(const struct peak_bound *bound, uint64_t stamp)
{
    uint32_t first = bound->step_count;
    while (first > 0 && bound->steps[first - 1].stamp >= stamp) {
        first--;
    }
    return first;
}

// Add `bytes` to all steps since `stamp`.
static void raise_steps(struct peak_bound *bound, uint64_t stamp, uint64_t bytes)
{
    uint32_t first = find_step(bound, stamp);
    for (uint32_t i = first; i < bound->step_count; i++) {
        bound->steps[i].height_bytes += bytes;
    }
    if (first == bound->step_count) {
        return;
    }
    const uint64_t highest_bytes = bound->steps[first].height_bytes;
    bound->upper_bytes = max_u64(bound->upper_bytes, highest_bytes);
    while (first > 0 && bound->steps[first - 1].height_bytes <= highest_bytes) {
        drop_step(bound, --first);
    }
}

void peak_bound_landed(struct peak_bound *bound, struct peak_flight *flight)
{
    bound->flight_bytes -= flight->bytes;
    bound->early_bytes -= flight->early_bytes;
    flight->bytes = 0;
    flight->early_bytes = 0;
}

void peak_bound_allocating(struct peak_bound *bound,
                           struct peak_flight *flight,
                           uint64_t stamp,
                           uint64_t bytes)
{
    if (stamp > flight->stamp) {
        bound->early_bytes -= flight->early_bytes;
        flight->early_bytes = 0;
    } else {
        bound->early_bytes += bytes;
        flight->early_bytes += bytes;
    }
}

void peak_bound_allocated(struct peak_bound *bound,
                          struct peak_flight *flight,
                          uint64_t stamp,
                          uint64_t bytes,
                          uint64_t live_bytes)
{
    const bool is_early = stamp <= flight->stamp;
    const uint64_t replaced_bytes = min_u64(bytes, flight->bytes);
    // In between, the freed block, the allocated block or neither was there.
    if (bytes > replaced_bytes) {
        raise_steps(bound, flight->stamp, bytes - replaced_bytes);
    }
    advance_bound(bound, stamp);
    if (is_early) {
        bound->flight_bytes -= replaced_bytes;
        flight->bytes -= replaced_bytes;
    } else {
        peak_bound_landed(bound, flight);
        flight->stamp = stamp;
    }
    note_height(bound, live_bytes);
}

void peak_bound_freed(struct peak_bound *bound,
                      struct peak_flight *flight,
                      uint64_t stamp,
                      uint64_t bytes,
                      uint64_t live_bytes)
{
    if (stamp < bound->peak_stamp) { // it comes late: the peak was counted with it
        bound->below_bytes += bytes;
    }
    advance_bound(bound, stamp);
    peak_bound_landed(bound, flight);
    bound->flight_bytes += bytes;
    *flight = (struct peak_flight){.stamp = stamp, .bytes = bytes};
    note_height(bound, live_bytes);
}

void peak_bound_joined(struct peak_bound *bound, uint64_t stamp, uint64_t live_bytes)
{
    advance_bound(bound, stamp);
    note_height(bound, live_bytes);
}

void peak_bound_followed(struct peak_bound *bound,
                         struct peak_flight *flight,
                         const struct peak_flight *before)
{
    peak_bound_landed(bound, flight);
    bound->flight_bytes += before->bytes;
    bound->early_bytes += before->early_bytes;
    *flight = *before;
}

// Add a ghost, or to the last one.
static void add_ghost(struct peak_bound *bound, const struct peak_ghost *ghost)
{
    if (bound->ghost_count < PEAK_GHOSTS_MAX) {
        bound->ghosts[bound->ghost_count++] = *ghost;
        return;
    }
    struct peak_ghost *last = &bound->ghosts[PEAK_GHOSTS_MAX - 1];
    last->bytes += ghost->bytes;
    last->process_bytes += ghost->process_bytes;
    last->early_bytes += ghost->early_bytes;
    last->until_stamp = max_u64(ghost->until_stamp, last->until_stamp);
}

void peak_bound_leave(struct peak_bound *bound,
                      uint64_t bytes,
                      uint64_t until_stamp,
                      uint64_t live_bytes)
{
    if (until_stamp > bound->latest_stamp && bytes > 0) {
        add_ghost(bound, &(struct peak_ghost){
                             .until_stamp = until_stamp, .bytes = bytes, .process_bytes = bytes});
        note_height(bound, live_bytes);
    }
}

void peak_bound_rested(struct peak_bound *bound, struct peak_flight *flight, uint64_t stamp)
{
    if (stamp > bound->latest_stamp && (flight->bytes > 0 || flight->early_bytes > 0)) {
        add_ghost(bound, &(struct peak_ghost){.until_stamp = stamp,
                                              .bytes = flight->bytes,
                                              .early_bytes = flight->early_bytes});
        bound->early_bytes += flight->early_bytes; // of the ghost
    }
    peak_bound_landed(bound, flight);
    flight->stamp = max_u64(flight->stamp, stamp);
}
