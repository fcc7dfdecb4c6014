// SPDX-License-Identifier: MIT
#include "aggregate/live_blocks/live_boxes.h"

void live_boxes_release(struct live_boxes *boxes)
{
    live_box_vec_release(&boxes->all);
    *boxes = (struct live_boxes){0};
}

enum err live_boxes_new(struct live_boxes *boxes, const struct live_block *block, uint32_t *out)
{
    uint32_t box = boxes->free_first;
    if (boxes->free_count > 0) {
        boxes->free_first = boxes->all.items[box].next;
        boxes->free_count--;
    } else {
        TRY(live_box_vec_push(&boxes->all, (struct live_box){0}));
        box = (uint32_t)boxes->all.len - 1;
    }
    boxes->all.items[box] = (struct live_box){.block = *block, .next = BOX_NONE};
    *out = box;
    return ERR_OK;
}

void live_boxes_free(struct live_boxes *boxes, uint32_t box)
{
    boxes->all.items[box] = (struct live_box){.next = boxes->free_first};
    boxes->free_first = box;
    boxes->free_count++;
}

void live_boxes_append(struct live_boxes *boxes, uint32_t first, uint32_t box)
{
    while (boxes->all.items[first].next != BOX_NONE) {
        first = boxes->all.items[first].next;
    }
    boxes->all.items[first].next = box;
}

uint32_t live_boxes_take(struct live_boxes *boxes, uint32_t box, struct live_block *out)
{
    const uint32_t next = boxes->all.items[box].next;
    *out = boxes->all.items[box].block;
    live_boxes_free(boxes, box);
    return next;
}

void live_boxes_renumber(struct live_boxes *boxes, const uint32_t *rows)
{
    for (size_t i = 0; i < boxes->all.len; i++) { // a free box has row 0
        boxes->all.items[i].block.row = rows[boxes->all.items[i].block.row];
    }
}
