// SPDX-License-Identifier: MIT
// live_table: see the header. This file packs blocks into slots and keeps boxes; segment_growth.c
// has the memory of the slots.
#include "aggregate/live_blocks/live_table.h"

#include "aggregate/live_blocks/segment_growth.h"
#include "aggregate/live_blocks/segment_place.h"

enum {
    CACHED_PAGES = 16, // of a map that is in the nearest cache anyway
};

#define ROW_BITS      26
#define BORN_BITS     34
#define SIZE_LOW_BITS 16
#define SIZE_BITS     20

static inline bool fits_slot(uint64_t address)
{
    return (address & 7) == 0 && (address >> 3) != 0 && (address >> 3) <= KEY_MASK;
}

static inline bool block_fits_slot(const struct live_block *block)
{
    return block->size_bytes < (1u << SIZE_BITS) && block->row < (1u << ROW_BITS) &&
           block->born_ms < ((uint64_t)1 << BORN_BITS) && block->shift == 0;
}

static inline struct live_slot slot_pack(uint64_t key, const struct live_block *block)
{
    return (struct live_slot){
        .key = key | block->size_bytes << (KEY_BITS + 1),
        .value = block->row | block->born_ms << ROW_BITS |
                 (block->size_bytes >> SIZE_LOW_BITS) << (ROW_BITS + BORN_BITS),
    };
}

// Write each part to its destination. A block that is assembled elsewhere and copied at once would
// stall until its parts reach the cache.
static inline void slot_unpack(const struct live_slot *slot, struct live_block *out)
{
    out->size_bytes = slot->key >> (KEY_BITS + 1) | (slot->value >> (ROW_BITS + BORN_BITS))
                                                        << SIZE_LOW_BITS;
    out->born_ms = (slot->value >> ROW_BITS) & (((uint64_t)1 << BORN_BITS) - 1);
    out->row = (uint32_t)slot->value & ((1u << ROW_BITS) - 1);
    out->shift = 0;
}

void live_table_init(struct live_table *map, uint64_t seed)
{
    *map = (struct live_table){.segments.seed = seed};
}

void live_table_release(struct live_table *map)
{
    live_segments_release(&map->segments);
    live_boxes_release(&map->boxes);
    map_u64_release(&map->odd);
    *map = (struct live_table){0};
}

bool live_table_needs_prefetch(const struct live_table *map)
{
    return map->segments.list.len > 1 ||
           (map->segments.list.len == 1 && map->segments.list.items[0].page_count > CACHED_PAGES);
}

void live_table_prefetch(const struct live_table *map, uint64_t address)
{
    if (map->segments.list.len > 0) {
        const struct place place = place_of(&map->segments, address >> 3);
        __builtin_prefetch(place.home, 1);
        __builtin_prefetch(place.alternate, 1);
    }
}

static enum err add_odd(struct live_table *map, uint64_t address, const struct live_block *block)
{
    uint32_t box = 0;
    TRY(live_boxes_new(&map->boxes, block, &box));
    const uint32_t *first = map_u64_find(&map->odd, address);
    if (first != NULL) {
        live_boxes_append(&map->boxes, *first, box);
        return ERR_OK;
    }
    enum err err = map_u64_put(&map->odd, address, box);
    if (err != ERR_OK) {
        live_boxes_free(&map->boxes, box);
    }
    return err;
}

// Add a younger block at an address that has one: both go to boxes.
static enum err
add_generation(struct live_table *map, struct live_slot *slot, const struct live_block *block)
{
    uint32_t box = 0;
    TRY(live_boxes_new(&map->boxes, block, &box));
    if ((slot->key & KEY_BOXED) == 0) {
        struct live_block older;
        slot_unpack(slot, &older);
        uint32_t first = 0;
        enum err err = live_boxes_new(&map->boxes, &older, &first);
        if (err != ERR_OK) {
            live_boxes_free(&map->boxes, box);
            return err;
        }
        *slot = (struct live_slot){.key = (slot->key & KEY_MASK) | KEY_BOXED, .value = first};
    }
    live_boxes_append(&map->boxes, (uint32_t)slot->value, box);
    return ERR_OK;
}

static inline enum err slot_make(struct live_table *map,
                                 uint64_t key,
                                 const struct live_block *block,
                                 struct live_slot *out)
{
    if (LIKELY(block_fits_slot(block))) {
        *out = slot_pack(key, block);
        return ERR_OK;
    }
    uint32_t box = 0;
    TRY(live_boxes_new(&map->boxes, block, &box));
    *out = (struct live_slot){.key = key | KEY_BOXED, .value = box};
    return ERR_OK;
}

static void slot_discard(struct live_table *map, const struct live_slot *slot)
{
    if ((slot->key & KEY_BOXED) != 0) {
        live_boxes_free(&map->boxes, (uint32_t)slot->value);
    }
}

// Add a slot whose lines or segment are full.
static NOINLINE enum err add_by_growing(struct live_table *map, uint64_t key, struct live_slot slot)
{
    const uint64_t hash = hash_of(map->segments.seed, key);
    for (;;) {
        struct live_segment *segment = segment_of(&map->segments, hash);
        bool is_full = segment->used_count >= segment->page_count * SEGMENT_FULL_SLOTS;
        if (!is_full && live_segment_put(&map->segments, segment, slot, hash)) {
            return ERR_OK;
        }
        TRY(live_segments_grow(&map->segments, hash));
    }
}

// Add a block whose address fits a slot. `is_first`: the address has no block.
ALWAYS_INLINE enum err
add_slot(struct live_table *map, uint64_t key, const struct live_block *block, bool is_first)
{
    const struct place place = place_of(&map->segments, key);
    struct live_slot *found = is_first ? NULL : place_find(&place, key);
    if (UNLIKELY(found != NULL)) {
        return add_generation(map, found, block);
    }
    struct live_slot slot;
    TRY(slot_make(map, key, block, &slot));
    struct live_slot *room = emptier_free_slot(place.home, place.alternate);
    if (LIKELY(room != NULL &&
               place.segment->used_count < place.segment->page_count * SEGMENT_FULL_SLOTS)) {
        *room = slot;
        place.segment->used_count++;
        return ERR_OK;
    }
    enum err err = add_by_growing(map, key, slot);
    if (err != ERR_OK) {
        slot_discard(map, &slot);
    }
    return err;
}

ALWAYS_INLINE enum err
add(struct live_table *map, uint64_t address, const struct live_block *block, bool is_first)
{
    if (UNLIKELY(!fits_slot(address))) {
        TRY(add_odd(map, address, block));
    } else {
        if (UNLIKELY(map->segments.list.len == 0)) {
            TRY(live_segments_grow(&map->segments, hash_of(map->segments.seed, address >> 3)));
        }
        TRY(add_slot(map, address >> 3, block, is_first));
    }
    map->live_count++;
    return ERR_OK;
}

enum err live_table_add(struct live_table *map, uint64_t address, const struct live_block *block)
{
    return add(map, address, block, false);
}

enum err
live_table_add_first(struct live_table *map, uint64_t address, const struct live_block *block)
{
    return add(map, address, block, true);
}

static NOINLINE bool take_odd(struct live_table *map, uint64_t address, struct live_block *out)
{
    uint32_t *first = map_u64_find(&map->odd, address);
    if (first == NULL) {
        return false;
    }
    uint32_t next = live_boxes_take(&map->boxes, *first, out);
    if (next == BOX_NONE) {
        (void)map_u64_remove(&map->odd, address); // known to be there
    } else {
        *first = next;
    }
    map->live_count--;
    return true;
}

bool live_table_take(struct live_table *map,
                     uint64_t address,
                     struct live_block *out,
                     bool *is_last)
{
    *is_last = true;
    if (UNLIKELY(!fits_slot(address))) {
        const bool is_taken = take_odd(map, address, out);
        *is_last = !is_taken || map_u64_find(&map->odd, address) == NULL;
        return is_taken;
    }
    if (UNLIKELY(map->segments.list.len == 0)) {
        return false;
    }
    const struct place place = place_of(&map->segments, address >> 3);
    struct live_slot *slot = place_find(&place, address >> 3);
    if (slot == NULL) {
        return false;
    }
    map->live_count--;
    if (UNLIKELY((slot->key & KEY_BOXED) != 0)) {
        uint32_t next = live_boxes_take(&map->boxes, (uint32_t)slot->value, out);
        if (next != BOX_NONE) {
            slot->value = next;
            *is_last = false;
            return true;
        }
    } else {
        slot_unpack(slot, out);
    }
    *slot = (struct live_slot){0};
    struct live_segment *segment = place.segment;
    segment->used_count--;
    if (UNLIKELY(segment->used_count < segment->page_count * SEGMENT_SPARSE_SLOTS) &&
        segment->page_count > 1 && segment->page_count > map->segments.kept_pages) {
        live_segment_shrink(&map->segments, segment);
    }
    return true;
}

bool live_table_has(struct live_table *map, uint64_t address)
{
    if (UNLIKELY(!fits_slot(address))) {
        return map_u64_find(&map->odd, address) != NULL;
    }
    if (map->segments.list.len == 0) {
        return false;
    }
    const struct place place = place_of(&map->segments, address >> 3);
    return place_find(&place, address >> 3) != NULL;
}

static enum live_step next_box(const struct live_table *map,
                               struct live_table_position *position,
                               uint64_t *address,
                               struct live_block *block)
{
    const struct live_box *box = map->boxes.all.items + (position->box - 1);
    *address = position->address;
    *block = box->block;
    position->box = box->next == BOX_NONE ? 0 : box->next + 1;
    return LIVE_STEP_BLOCK;
}

static enum live_step step_in_segment(const struct live_table *map,
                                      struct live_table_position *position,
                                      uint64_t *address,
                                      struct live_block *block)
{
    const struct live_segments *all = &map->segments;
    const struct live_segment *segment =
        all->list.items + all->directory[position->hashes >> (SEGMENT_DEPTH_MAX - all->depth)];
    while (position->slot < segment->page_count * PAGE_SLOTS) {
        const struct live_slot *slot = segment->slots + position->slot++;
        if (slot->key == 0) {
            continue;
        }
        position->address = (slot->key & KEY_MASK) << 3;
        if ((slot->key & KEY_BOXED) != 0) {
            position->box = (uint32_t)slot->value + 1;
            return next_box(map, position, address, block);
        }
        *address = position->address;
        slot_unpack(slot, block);
        return LIVE_STEP_BLOCK;
    }
    position->hashes += 1u << (SEGMENT_DEPTH_MAX - segment->depth);
    position->slot = 0;
    return LIVE_STEP_PART;
}

enum live_step live_table_step(const struct live_table *map,
                               struct live_table_position *position,
                               uint64_t *address,
                               struct live_block *block)
{
    if (position->box != 0) {
        return next_box(map, position, address, block);
    }
    if (map->segments.list.len > 0 && position->hashes < 1u << SEGMENT_DEPTH_MAX) {
        return step_in_segment(map, position, address, block);
    }
    if (position->slot == 0) {
        position->slot = 1;
        return LIVE_STEP_PART;
    }
    uint32_t box = 0;
    position->slot = 0;
    if (!map_u64_next(&map->odd, &position->odd, &position->address, &box)) {
        return LIVE_STEP_END;
    }
    position->box = box + 1;
    return next_box(map, position, address, block);
}

void live_table_renumber(struct live_table *map, const uint32_t *rows)
{
    const uint64_t row_mask = ((uint64_t)1 << ROW_BITS) - 1;
    for (uint32_t i = 0; i < map->segments.list.len; i++) {
        const size_t slot_count = (size_t)map->segments.list.items[i].page_count * PAGE_SLOTS;
        for (size_t k = 0; k < slot_count; k++) {
            struct live_slot *slot = map->segments.list.items[i].slots + k;
            if (slot->key != 0 && (slot->key & KEY_BOXED) == 0) {
                slot->value = (slot->value & ~row_mask) | rows[slot->value & row_mask];
            }
        }
    }
    live_boxes_renumber(&map->boxes, rows);
}

static bool segment_check(const struct live_table *map, const struct live_segment *segment)
{
    uint32_t used = 0;
    size_t slot_count = (size_t)segment->page_count * PAGE_SLOTS;
    for (size_t i = 0; i < slot_count; i++) {
        struct live_slot *slot = segment->slots + i;
        if (slot->key == 0) {
            continue;
        }
        used++;
        const struct place place = place_of(&map->segments, slot->key & KEY_MASK);
        if (place.segment != segment || place_find(&place, slot->key & KEY_MASK) != slot) {
            return false;
        }
        if ((slot->key & KEY_BOXED) != 0 && slot->value >= map->boxes.all.len) {
            return false;
        }
    }
    return used == segment->used_count && used <= segment->page_count * SEGMENT_FULL_SLOTS;
}

bool live_table_check(const struct live_table *map)
{
    for (uint32_t i = 0; i < map->segments.list.len; i++) {
        if (map->segments.list.items[i].depth > map->segments.depth ||
            !segment_check(map, map->segments.list.items + i)) {
            return false;
        }
    }
    struct live_table_position position = {0};
    uint64_t address = 0;
    struct live_block block;
    uint64_t seen = 0;
    enum live_step step = LIVE_STEP_PART;
    while (seen <= map->live_count && step != LIVE_STEP_END) {
        step = live_table_step(map, &position, &address, &block);
        seen += step == LIVE_STEP_BLOCK;
    }
    return seen == map->live_count;
}
