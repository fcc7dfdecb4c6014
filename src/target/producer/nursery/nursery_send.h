// SPDX-License-Identifier: MIT
// nursery_send: what leaves a nursery for the ring: the rest of nursery.c and nursery_turn.c.
// Context: T, as nursery.h. False: recording is over for good.
#pragma once

#include "target/producer/nursery/nursery.h"

ALWAYS_INLINE bool nursery_is_at(const struct nursery_block *block, uint64_t address)
{
    return (block->place & NURSERY_ADDRESS_MASK) == address;
}

// Where the block at `address` is, or what lies where it belongs.
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

// Sends a HELD block; it is SENT then.
bool nursery_send_block(struct lane_producer *p, struct nursery_block *block) MUST_USE;

// Sends what a fold counts; it is unused then.
bool nursery_send_fold(struct lane_producer *p, struct nursery_fold *fold) MUST_USE;

// Sends a HELD block together with its free; its place is vacant then.
bool nursery_send_pair(struct lane_producer *p, struct nursery_block *block, bool is_temporary)
    MUST_USE;

// Shows the recorder the high-water mark, if there is one that it has not seen.
bool nursery_show_high_water(struct lane_producer *p) MUST_USE;

// The same, and sends all the other HELD blocks.
bool nursery_send_blocks(struct lane_producer *p) MUST_USE;

// Sends all folds and HELD blocks.
bool nursery_send_all(struct lane_producer *p) MUST_USE;
