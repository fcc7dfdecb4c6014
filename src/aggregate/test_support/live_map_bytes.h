// SPDX-License-Identifier: MIT
// live_map_bytes: the memory of the live blocks, for a test and for recorder_throughput.
// Context: tests and benchmarks.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "aggregate/live_blocks/live_map.h"
#include "aggregate/live_blocks/segment_place.h"

// Return the memory of the table's blocks, in bytes.
static inline uint64_t live_map_bytes(const struct live_map *map)
{
    const struct live_segments *segments = &map->table.segments;
    return segments->page_count * PAGE_SLOTS * sizeof(struct live_slot) +
           segments->list.cap * sizeof(struct live_segment) +
           (segments->directory != NULL ? sizeof(*segments->directory) << segments->depth : 0) +
           map->table.boxes.all.cap * sizeof(struct live_box) +
           map->table.odd.slot_count * (sizeof(uint64_t) + sizeof(uint32_t));
}
