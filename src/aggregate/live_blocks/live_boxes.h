// SPDX-License-Identifier: MIT
// live_boxes: queues of blocks that no slot of a live_table can hold.
//
// A box has a number; the number of its first box names a queue. Freed boxes are reused first.
// Memory: 32 bytes a box, kept until release.
// Context: H, one thread.
// Failure: ERR_NO_MEMORY.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "host/containers/vec.h"

struct live_block {
    uint64_t size_bytes;
    uint64_t born_ms;
    uint32_t row;
    uint32_t shift; // sampling weight 1 << shift (memory_budget.h); else 0
};

#define BOX_NONE UINT32_MAX

struct live_box {
    struct live_block block;
    uint32_t next; // in its queue or among the free boxes, or BOX_NONE
};

DEFINE_VEC(live_box_vec, struct live_box);

// Zeroed is empty and valid.
struct live_boxes {
    struct live_box_vec all; // owned; boxes ever used
    uint32_t free_count;     // length of the list of free boxes that begins with free_first
    uint32_t free_first;
};

void live_boxes_release(struct live_boxes *boxes);

// Make a queue of `block` alone.
enum err live_boxes_new(struct live_boxes *boxes, const struct live_block *block, uint32_t *out)
    MUST_USE;

// Free a box that is in no queue any more.
void live_boxes_free(struct live_boxes *boxes, uint32_t box);

// Append `box` to the queue that begins with `first`.
void live_boxes_append(struct live_boxes *boxes, uint32_t first, uint32_t box);

// Give the rows of all blocks new numbers: row r becomes rows[r].
void live_boxes_renumber(struct live_boxes *boxes, const uint32_t *rows);

// Take the first block of a queue into *out. Return the box of the next block, or BOX_NONE.
uint32_t live_boxes_take(struct live_boxes *boxes, uint32_t box, struct live_block *out);
