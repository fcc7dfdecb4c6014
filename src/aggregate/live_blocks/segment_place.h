// SPDX-License-Identifier: MIT
// segment_place: where the blocks of an address may be in the segments of a live_table.
//
// A segment has 1 to 128 pages of 64 lines. The hash of an address names two lines of one segment:
// the home line and the alternate line.
// The functions are inline because each event runs them. Context: H; pure.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "aggregate/live_blocks/live_segments.h"
#include "aggregate/live_blocks/slot_line.h"
#include "base/hash.h"

enum {
    PAGE_LINES = 64,
    PAGE_SLOTS = LINE_SLOTS * PAGE_LINES,
};

static inline uint64_t hash_of(uint64_t seed, uint64_t key)
{
    return hash_mix(key ^ seed);
}

static inline uint32_t directory_slot(const struct live_segments *all, uint64_t hash)
{
    return (uint32_t)((hash >> 1) >> (63 - all->depth));
}

// Return the home line by the low 32 bits of the hash. So growing keeps the order of lines, and
// copies from one place to one other. Home and alternate line are reflections of each other.
static inline uint32_t home_line(const struct live_segment *segment, uint64_t hash)
{
    return (uint32_t)(((hash & UINT32_MAX) * segment->page_count * PAGE_LINES) >> 32);
}

static inline uint32_t
alternate_line(const struct live_segment *segment, uint64_t hash, uint32_t line)
{
    uint32_t line_count = segment->page_count * PAGE_LINES;
    uint32_t mirror = (uint32_t)(((hash >> 12 & UINT32_MAX) * line_count) >> 32);
    return mirror >= line ? mirror - line : mirror + line_count - line;
}

static inline struct live_slot *line_at(const struct live_segment *segment, uint32_t line)
{
    return segment->slots + (size_t)line * LINE_SLOTS;
}

static inline struct live_segment *segment_of(const struct live_segments *all, uint64_t hash)
{
    return all->list.items + all->directory[directory_slot(all, hash)];
}

// The places where the blocks of one address may be.
struct place {
    struct live_segment *segment;
    struct live_slot *home; // a line
    struct live_slot *alternate;
};

static inline struct place place_of(const struct live_segments *all, uint64_t key)
{
    const uint64_t hash = hash_of(all->seed, key);
    struct live_segment *segment = segment_of(all, hash);
    const uint32_t home = home_line(segment, hash);
    return (struct place){.segment = segment,
                          .home = line_at(segment, home),
                          .alternate = line_at(segment, alternate_line(segment, hash, home))};
}

static inline struct live_slot *place_find(const struct place *place, uint64_t key)
{
    unsigned home = line_match_mask(place->home, key);
    unsigned found = home | line_match_mask(place->alternate, key);
    struct live_slot *line = home != 0 ? place->home : place->alternate;
    return found != 0 ? line + __builtin_ctz(found) : NULL;
}
