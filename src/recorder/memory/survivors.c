// SPDX-License-Identifier: MIT
#include "recorder/memory/survivors.h"

#include "base/compiler.h"
#include "base/minmax.h"
#include "base/order.h"
#include "host/memory/page_size.h"

enum {
    STEPS_PER_PAGE = 4
};

enum err survivors_init(struct survivors *survivors, const struct resident_pages *pages)
{
    *survivors = (struct survivors){.pages = pages,
                                    .steps_left = pages->wants.bits.len * 64 * STEPS_PER_PAGE};
    return page_fill_vec_resize(&survivors->fill, pages->wants.bits.len * 64);
}

void survivors_release(struct survivors *survivors)
{
    page_fill_vec_release(&survivors->fill);
}

// The pages of a range within an area, one after the other.
struct page_walk {
    uint64_t index;
    uint64_t at; // address
    uint64_t end;
    uint64_t area_start;
    uint64_t bytes; // of the range, on this page
};

static struct page_walk
begin_walk(const struct survivors *survivors, size_t area, struct address_range range)
{
    return (struct page_walk){
        .index = resident_pages_index(survivors->pages, area, range.start),
        .at = range.start,
        .end = range.end,
        .area_start = survivors->pages->map->areas.items[area].start,
    };
}

static bool next_page(struct page_walk *walk)
{
    if (walk->bytes > 0) {
        walk->at += walk->bytes;
        walk->index++;
    }
    const uint64_t rest = page_bytes() - page_rest(walk->at - walk->area_start);
    walk->bytes = walk->at < walk->end ? min_u64(rest, walk->end - walk->at) : 0;
    return walk->bytes > 0;
}

static uint64_t fill_of(const struct survivors *survivors, uint64_t index)
{
    return survivors->fill.items[index] & (PAGE_PINNED - 1);
}

void survivors_count(struct survivors *survivors, size_t area, struct address_range block)
{
    const uint64_t steps = page_count(block.end - block.start);
    if (steps > survivors->steps_left) {
        return;
    }
    survivors->steps_left -= steps;
    struct page_walk walk = begin_walk(survivors, area, block);
    while (next_page(&walk)) {
        uint32_t *fill = &survivors->fill.items[walk.index];
        const uint64_t bytes = min_u64(fill_of(survivors, walk.index) + walk.bytes, page_bytes());
        *fill = (uint32_t)((*fill & PAGE_PINNED) | bytes);
    }
}

void survivors_pin(struct survivors *survivors, size_t area, struct address_range range)
{
    const uint64_t steps = page_count(range.end - range.start);
    if (steps > survivors->steps_left) {
        return;
    }
    survivors->steps_left -= steps;
    struct page_walk walk = begin_walk(survivors, area, range);
    while (next_page(&walk)) {
        survivors->fill.items[walk.index] |= PAGE_PINNED;
    }
}

uint64_t survivors_releasable_bytes(const struct survivors *survivors,
                                    size_t area,
                                    struct address_range range,
                                    uint64_t *out_trailing_bytes)
{
    uint64_t bytes = 0;
    uint64_t trailing_bytes = 0;
    struct page_walk walk = begin_walk(survivors, area, range);
    while (next_page(&walk)) {
        if ((survivors->fill.items[walk.index] & PAGE_PINNED) != 0) {
            trailing_bytes = 0;
        } else if (resident_pages_has(survivors->pages, walk.index)) {
            bytes += walk.bytes;
            trailing_bytes += walk.bytes;
        }
    }
    *out_trailing_bytes = trailing_bytes;
    return bytes;
}

static bool is_sparse(const struct survivors *survivors, uint64_t index)
{
    return fill_of(survivors, index) <= page_bytes() / SPARSE_PARTS &&
           resident_pages_has(survivors->pages, index);
}

void survivors_sum(const struct survivors *survivors,
                   size_t area,
                   struct address_range range,
                   struct sparse_pages *sum)
{
    struct page_walk walk = begin_walk(survivors, area, range);
    while (next_page(&walk)) {
        const uint64_t fill = fill_of(survivors, walk.index);
        if (!is_sparse(survivors, walk.index)) {
            continue;
        }
        sum->empty_bytes += fill == 0 ? page_bytes() : 0;
        sum->sparse_bytes += fill != 0 ? page_bytes() : 0;
        sum->block_bytes += fill;
    }
}

uint64_t
survivors_held_bytes(const struct survivors *survivors, size_t area, struct address_range block)
{
    uint64_t held_bytes = 0;
    struct page_walk walk = begin_walk(survivors, area, block);
    while (next_page(&walk)) {
        const uint64_t fill = fill_of(survivors, walk.index);
        if (fill > 0 && is_sparse(survivors, walk.index)) {
            held_bytes += (page_bytes() - fill) * walk.bytes / fill;
        }
    }
    return held_bytes;
}

void survivor_list_release(struct survivor_list *list)
{
    map_u64_release(&list->of_nodes);
    rec_survivor_vec_release(&list->items);
}

enum err survivor_list_add(struct survivor_list *list,
                           uint32_t node,
                           const struct listed_block *block,
                           uint64_t held_bytes)
{
    uint32_t index;
    TRY(map_u64_number(&list->of_nodes, node, list->items.len, &index));
    if (index == list->items.len) {
        TRY(rec_survivor_vec_push(
            &list->items, (struct rec_survivor){.node = node, .oldest_ms = block->born_ms}));
    }
    struct rec_survivor *survivor = &list->items.items[index];
    survivor->blocks++;
    survivor->block_bytes += block->size_bytes;
    survivor->held_bytes += held_bytes;
    survivor->oldest_ms = min_u64(survivor->oldest_ms, block->born_ms);
    survivor->newest_ms = max_u64(survivor->newest_ms, block->born_ms);
    return ERR_OK;
}

static int compare(const void *left, const void *right)
{
    const struct rec_survivor *a = left;
    const struct rec_survivor *b = right;
    return order_u64(b->held_bytes, a->held_bytes) ?: order_u64(a->node, b->node);
}

enum err survivor_list_append_top(struct survivor_list *list,
                                  uint32_t snapshot,
                                  struct rec_survivor_vec *out)
{
    rec_survivor_vec_sort(&list->items, compare);
    map_u64_clear(&list->of_nodes); // the items have moved
    for (size_t i = 0; i < list->items.len && i < SURVIVORS_MAX; i++) {
        list->items.items[i].snapshot = snapshot;
        TRY(rec_survivor_vec_push(out, list->items.items[i]));
    }
    return ERR_OK;
}
