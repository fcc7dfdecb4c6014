// SPDX-License-Identifier: MIT
// nursery_send: moves the contents of a nursery into the ring, for nursery.c and nursery_turn.c.
// Context: T, as nursery.h. False: the recording has ended.
#pragma once

#include "target/producer/nursery/nursery.h"

ALWAYS_INLINE bool nursery_is_at(const struct nursery_block *block, uint64_t address)
{
    return (block->place & NURSERY_ADDRESS_MASK) == address;
}

// Return the place that holds the block at `address`, or the preferred place of that address.
ALWAYS_INLINE struct nursery_block *nursery_find_block(struct lane_header *lane, uint64_t address)
{
    struct nursery_block *block = nursery_block_of(lane, address);
    if (nursery_is_at(block, address)) {
        return block;
    }
    struct nursery_block *line = nursery_line_of(lane, address);
    for (uint32_t i = 0; i < NURSERY_LINE; i++) {
        if (nursery_is_at(line + i, address)) {
            return line + i;
        }
    }
    return block;
}

// Send a HELD block, and make it SENT.
bool nursery_send_block(struct lane_producer *p, struct nursery_block *block) MUST_USE;

// Send the counts of a counter, and make it unused.
bool nursery_send_counter(struct lane_producer *p, struct nursery_counter *counter) MUST_USE;

// Send a HELD block together with its free, and make its place vacant.
bool nursery_send_pair(struct lane_producer *p, struct nursery_block *block, bool is_temporary)
    MUST_USE;

// Show the recorder the high-water mark, if it has not seen it.
bool nursery_show_high_water(struct lane_producer *p) MUST_USE;

// Show the high-water mark, and send all the other HELD blocks.
bool nursery_send_blocks(struct lane_producer *p) MUST_USE;

// Send all counters and HELD blocks.
bool nursery_send_all(struct lane_producer *p) MUST_USE;
