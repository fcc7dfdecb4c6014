// SPDX-License-Identifier: MIT
// live_boxes: blocks that no slot of a live_table can hold, in queues.
//
// A box is known by its number, and a queue by that of its first. Boxes that are not needed any
// more are the next to be used. Memory: 32 bytes a box, never given back. Context: H, one thread.
// Failure: ERR_NO_MEMORY.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct live_block {
    uint64_t size_bytes;
    uint64_t born_ms;
    uint32_t row;
    uint32_t
        shift; // it stands for 1 << shift blocks (target/producer/sampler.h); 0 but where sampled
};

static inline bool live_block_is_same(const struct live_block *a, const struct live_block *b)
{
    return a->size_bytes == b->size_bytes && a->born_ms == b->born_ms && a->row == b->row &&
           a->shift == b->shift;
}

#define BOX_NONE UINT32_MAX

struct live_box {
    struct live_block block;
    uint32_t next; // of its queue or of the free ones, or BOX_NONE
};

// Zeroed is empty and valid.
struct live_boxes {
    struct live_box *items; // owned
    uint32_t count;         // ever used
    uint32_t cap;
    uint32_t free_count; // of them not in use, beginning with free_first
    uint32_t free_first;
};

void live_boxes_release(struct live_boxes *boxes);

// A queue of `block` alone.
enum err live_boxes_new(struct live_boxes *boxes, const struct live_block *block, uint32_t *out)
    MUST_USE;

// The box is in no queue any more.
void live_boxes_free(struct live_boxes *boxes, uint32_t box);

// `box` becomes the last of the queue that begins with `first`.
void live_boxes_append(struct live_boxes *boxes, uint32_t first, uint32_t box);

// Takes the first block of a queue into *out; returns the box of the next one, or BOX_NONE.
uint32_t live_boxes_take(struct live_boxes *boxes, uint32_t box, struct live_block *out);
