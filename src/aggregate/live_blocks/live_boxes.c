// SPDX-License-Identifier: MIT
// live_boxes: see the header.
#include "aggregate/live_blocks/live_boxes.h"

#include <stdlib.h>

enum {
    FIRST_CAP = 16,
};

void live_boxes_release(struct live_boxes *boxes)
{
    free(boxes->items);
    *boxes = (struct live_boxes){0};
}

static enum err grow(struct live_boxes *boxes)
{
    const uint32_t cap = boxes->cap == 0 ? FIRST_CAP : boxes->cap * 2;
    struct live_box *items = realloc(boxes->items, (size_t)cap * sizeof(*items));
    if (items == NULL) {
        return ERR_NO_MEMORY;
    }
    boxes->items = items;
    boxes->cap = cap;
    return ERR_OK;
}

enum err live_boxes_new(struct live_boxes *boxes, const struct live_block *block, uint32_t *out)
{
    uint32_t box = boxes->free_first;
    if (boxes->free_count > 0) {
        boxes->free_first = boxes->items[box].next;
        boxes->free_count--;
    } else {
        if (boxes->count == boxes->cap) {
            TRY(grow(boxes));
        }
        box = boxes->count++;
    }
    boxes->items[box] = (struct live_box){.block = *block, .next = BOX_NONE};
    *out = box;
    return ERR_OK;
}

void live_boxes_free(struct live_boxes *boxes, uint32_t box)
{
    boxes->items[box] = (struct live_box){.next = boxes->free_first};
    boxes->free_first = box;
    boxes->free_count++;
}

void live_boxes_append(struct live_boxes *boxes, uint32_t first, uint32_t box)
{
    while (boxes->items[first].next != BOX_NONE) {
        first = boxes->items[first].next;
    }
    boxes->items[first].next = box;
}

uint32_t live_boxes_take(struct live_boxes *boxes, uint32_t box, struct live_block *out)
{
    const uint32_t next = boxes->items[box].next;
    *out = boxes->items[box].block;
    live_boxes_free(boxes, box);
    return next;
}

void live_boxes_renumber(struct live_boxes *boxes, const uint32_t *rows)
{
    for (uint32_t i = 0; i < boxes->count; i++) { // a free box has row 0
        boxes->items[i].block.row = rows[boxes->items[i].block.row];
    }
}
