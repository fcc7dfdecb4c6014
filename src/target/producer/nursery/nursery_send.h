// SPDX-License-Identifier: MIT
// nursery_send: moves the contents of a nursery into the ring, for nursery.c and nursery_turn.c.
// Context: T, as nursery.h. False: the recording has ended.
#pragma once

#include "target/producer/nursery/nursery.h"

// Send a HELD block, and make it SENT.
bool nursery_send_block(struct lane_producer *p, struct nursery_block *block) MUST_USE;

// Send the counts of a counter, and make it unused.
bool nursery_send_counter(struct lane_producer *p, struct nursery_counter *counter) MUST_USE;

// Show the recorder the high-water mark, if it has not seen it.
bool nursery_show_high_water(struct lane_producer *p) MUST_USE;

// Show the high-water mark, and send all the other HELD blocks.
bool nursery_send_blocks(struct lane_producer *p) MUST_USE;

// Send all counters and HELD blocks.
bool nursery_send_all(struct lane_producer *p) MUST_USE;
