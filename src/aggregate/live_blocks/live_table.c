// SPDX-License-Identifier: MIT
// live_table: see the header. This file finds slots, grows segments and keeps boxes.
#include "aggregate/live_blocks/live_table.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "aggregate/live_blocks/slot_line.h"
#include "base/hash.h"
#include "base/minmax.h"

enum {
    PAGE_LINES = 64,
    PAGE_SLOTS = LINE_SLOTS * PAGE_LINES,
    SEGMENT_PAGES_MAX = 128,
    KICKS_MAX = 200,
    PAGE_BYTES = PAGE_SLOTS * sizeof(struct live_slot),
    CACHED_PAGES = 16, // of a map that is in the nearest cache anyway
    FILL_SLOTS = 64,   // their new places are prefetched before they are copied
    DEPTH_MAX = 20,
};

// Slots of a page, out of 256. A segment grows at FULL, and then has FRESH; below SPARSE it
// shrinks. The halves of a split segment begin at FRESH plus a number of their own, so that
// segments do not all grow at the same time: memory then depends on the average fill, not on the
// worst. While the whole map is small, memory matters less than the cost of growing.
enum {
    FULL_SLOTS = 215,
    FRESH_SLOTS = 151,
    FRESH_SLOTS_SMALL = 128,
    FRESH_SPREAD = 56,
    SPARSE_SLOTS = 64,
    SMALL_MAP_BLOCKS = 200000,
};

// All segments together keep 2 MiB even if they are sparse. Many programs fill and empty their heap
// again and again, and would pay for growing each time.
enum {
    KEPT_PAGES = 512
};

#define ROW_BITS      26
#define BORN_BITS     34
#define SIZE_LOW_BITS 16
#define SIZE_BITS     20

_Static_assert(PAGE_SLOTS % FILL_SLOTS == 0, "slots that are copied together lie in one page");

static inline uint64_t hash_of(uint64_t seed, uint64_t key)
{
    return hash_mix(key ^ seed);
}

static inline uint32_t directory_slot(const struct live_table *map, uint64_t hash)
{
    return (uint32_t)((hash >> 1) >> (63 - map->depth));
}

// Return the home line by the low 32 bits of the hash. So growing keeps the order of lines, and
// copies from one place to one other. Home and alternate line are reflections of each other.
static inline uint32_t home_line(const struct live_segment *segment, uint64_t hash)
{
    return (uint32_t)(((hash & UINT32_MAX) * segment->page_count * PAGE_LINES) >> 32);
}

static inline uint32_t
alternate_line(const struct live_segment *segment, uint64_t hash, uint32_t line)
{
    uint32_t line_count = segment->page_count * PAGE_LINES;
    uint32_t mirror = (uint32_t)(((hash >> 12 & UINT32_MAX) * line_count) >> 32);
    return mirror >= line ? mirror - line : mirror + line_count - line;
}

static inline struct live_slot *line_at(const struct live_segment *segment, uint32_t line)
{
    return segment->slots + (size_t)line * LINE_SLOTS;
}

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
    *map = (struct live_table){.seed = seed};
}

static void segment_release(struct live_table *map, struct live_segment *segment)
{
    (void)munmap(segment->slots, (size_t)segment->page_count * PAGE_BYTES); // the mapping is valid
    map->page_count -= segment->page_count;
    segment->slots = NULL;
    segment->page_count = 0;
}

void live_table_release(struct live_table *map)
{
    for (uint32_t i = 0; i < map->segment_count; i++) {
        segment_release(map, map->segments + i);
    }
    free(map->segments);
    free(map->directory);
    live_boxes_release(&map->boxes);
    map_u64_release(&map->odd);
    *map = (struct live_table){0};
}

static inline struct live_segment *segment_of(const struct live_table *map, uint64_t hash)
{
    return map->segments + map->directory[directory_slot(map, hash)];
}

// The places where the blocks of one address may be.
struct place {
    struct live_segment *segment;
    struct live_slot *home; // a line
    struct live_slot *alternate;
};

static inline struct place place_of(const struct live_table *map, uint64_t key)
{
    const uint64_t hash = hash_of(map->seed, key);
    struct live_segment *segment = segment_of(map, hash);
    const uint32_t home = home_line(segment, hash);
    return (struct place){.segment = segment,
                          .home = line_at(segment, home),
                          .alternate = line_at(segment, alternate_line(segment, hash, home))};
}

static inline struct live_slot *place_find(const struct place *place, uint64_t key)
{
    unsigned home = line_match_mask(place->home, key);
    unsigned found = home | line_match_mask(place->alternate, key);
    struct live_slot *line = home != 0 ? place->home : place->alternate;
    return found != 0 ? line + __builtin_ctz(found) : NULL;
}

bool live_table_needs_prefetch(const struct live_table *map)
{
    return map->segment_count > 1 ||
           (map->segment_count == 1 && map->segments[0].page_count > CACHED_PAGES);
}

void live_table_prefetch(const struct live_table *map, uint64_t address)
{
    if (map->segment_count > 0) {
        const struct place place = place_of(map, address >> 3);
        __builtin_prefetch(place.home, 1);
        __builtin_prefetch(place.alternate, 1);
    }
}

static inline void slots_swap(struct live_slot *a, struct live_slot *b)
{
    struct live_slot kept = *a;
    *a = *b;
    *b = kept;
}

// Put `slot`, whose hash is `hash`, into `segment`; move others to their alternate lines if needed.
// Return false, with everything unchanged, if no way was found.
static bool segment_put(const struct live_table *map,
                        struct live_segment *segment,
                        struct live_slot slot,
                        uint64_t hash)
{
    struct live_slot *moved[KICKS_MAX];
    uint32_t line = home_line(segment, hash);
    uint32_t other = alternate_line(segment, hash, line);
    struct live_slot *room = emptier_free_slot(line_at(segment, line), line_at(segment, other));
    if (LIKELY(room != NULL)) {
        *room = slot;
        segment->used_count++;
        return true;
    }
    for (uint32_t kick = 0; kick < KICKS_MAX; kick++) {
        room = line_free_slot(line_at(segment, line));
        if (room != NULL) {
            *room = slot;
            segment->used_count++;
            return true;
        }
        moved[kick] = line_at(segment, line) + (kick + (uint32_t)hash) % LINE_SLOTS;
        slots_swap(moved[kick], &slot);
        hash = hash_of(map->seed, slot.key & KEY_MASK);
        line = alternate_line(segment, hash, line);
    }
    for (uint32_t kick = KICKS_MAX; kick > 0; kick--) {
        slots_swap(moved[kick - 1], &slot);
    }
    return false;
}

// Distribute kept_pages after a segment was added.
static void share_kept_pages(struct live_table *map)
{
    map->kept_pages = KEPT_PAGES / map->segment_count;
}

static uint32_t pages_for(const struct live_table *map, uint64_t block_count, uint32_t spread)
{
    uint32_t fresh = map->live_count < SMALL_MAP_BLOCKS ? FRESH_SLOTS_SMALL : FRESH_SLOTS;
    fresh += spread;
    uint64_t pages = (block_count + fresh - 1) / fresh;
    return pages == 0 ? 1 : (uint32_t)pages;
}

// Make a segment. Forked copies of the recorder do not have the slots.
static enum err segment_init(struct live_table *map, uint32_t page_count, struct live_segment *out)
{
    const size_t bytes = (size_t)page_count * PAGE_BYTES;
    void *slots = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (slots == MAP_FAILED) {
        return ERR_NO_MEMORY;
    }
    (void)madvise(slots, bytes, MADV_DONTFORK); // a failure costs memory
    *out = (struct live_segment){.slots = slots, .page_count = page_count};
    map->page_count += page_count;
    return ERR_OK;
}

// Selects the slots of a segment whose hash has `bit` as `want` states. Without a bit: all.
struct hash_half {
    uint64_t bit;
    bool want;
};

// Put the selected ones of FILL_SLOTS slots at `from` into `to`.
static bool fill_some(const struct live_table *map,
                      struct live_segment *to,
                      const struct live_slot *from,
                      struct hash_half half)
{
    struct live_slot slots[FILL_SLOTS];
    uint64_t hashes[FILL_SLOTS];
    uint32_t count = 0;
    for (uint32_t i = 0; i < FILL_SLOTS; i++) {
        const uint64_t hash = hash_of(map->seed, from[i].key & KEY_MASK);
        const bool is_meant = half.bit == 0 || ((hash & half.bit) != 0) == half.want;
        slots[count] = from[i];
        hashes[count] = hash;
        // Without a branch, which would be unpredictable.
        count += (unsigned)(from[i].key != 0) & (unsigned)is_meant;
    }
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t line = home_line(to, hashes[i]);
        __builtin_prefetch(line_at(to, line), 1);
        __builtin_prefetch(line_at(to, alternate_line(to, hashes[i], line)), 1);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!segment_put(map, to, slots[i], hashes[i])) {
            return false;
        }
    }
    return true;
}

// Put the selected slots of `from` into `to`, which is empty.
static bool segment_fill(const struct live_table *map,
                         struct live_segment *to,
                         const struct live_segment *from,
                         struct hash_half half)
{
    const size_t slot_count = (size_t)from->page_count * PAGE_SLOTS;
    for (size_t i = 0; i < slot_count; i += FILL_SLOTS) {
        if (!fill_some(map, to, from->slots + i, half)) {
            return false;
        }
    }
    return true;
}

// Make *out a copy of (a half of) `from` with room for growth.
static enum err segment_copy(struct live_table *map,
                             const struct live_segment *from,
                             uint32_t page_count,
                             struct hash_half half,
                             struct live_segment *out)
{
    for (;; page_count += 1 + page_count / 16) {
        struct live_segment to;
        TRY(segment_init(map, page_count, &to));
        to.depth = from->depth;
        if (segment_fill(map, &to, from, half)) {
            *out = to;
            return ERR_OK;
        }
        segment_release(map, &to); // a page overflowed: try larger
    }
}

static enum err segment_resize(struct live_table *map, struct live_segment *segment, uint32_t pages)
{
    struct live_segment grown;
    TRY(segment_copy(map, segment, pages, (struct hash_half){0}, &grown));
    segment_release(map, segment);
    *segment = grown;
    return ERR_OK;
}

static enum err directory_double(struct live_table *map)
{
    size_t old_count = (size_t)1 << map->depth;
    uint32_t *directory = malloc(2 * old_count * sizeof(*directory));
    if (directory == NULL) {
        return ERR_NO_MEMORY;
    }
    for (size_t i = 0; i < 2 * old_count; i++) {
        directory[i] = map->directory[i / 2];
    }
    free(map->directory);
    map->directory = directory;
    map->depth++;
    return ERR_OK;
}

static enum err segments_reserve(struct live_table *map)
{
    if (map->segment_count < map->segment_cap) {
        return ERR_OK;
    }
    uint32_t cap = map->segment_cap == 0 ? 4 : map->segment_cap * 2;
    struct live_segment *segments = realloc(map->segments, cap * sizeof(*segments));
    if (segments == NULL) {
        return ERR_NO_MEMORY;
    }
    map->segments = segments;
    map->segment_cap = cap;
    return ERR_OK;
}

// Any even spread over segments is sufficient.
static uint32_t spread_of(uint32_t segment)
{
    return segment * 37 % FRESH_SPREAD;
}

// Split segment `index` by the next bit of the hash.
static enum err segment_split(struct live_table *map, uint32_t index, uint64_t hash)
{
    TRY(segments_reserve(map));
    if (map->segments[index].depth == map->depth) {
        TRY(directory_double(map));
    }
    struct live_segment *old = map->segments + index;
    uint64_t bit = (uint64_t)1 << (63 - old->depth);
    uint32_t low_pages = pages_for(map, old->used_count / 2, spread_of(index));
    uint32_t high_pages = pages_for(map, old->used_count / 2, spread_of(map->segment_count));
    struct live_segment low;
    struct live_segment high;
    TRY(segment_copy(map, old, low_pages, (struct hash_half){.bit = bit}, &low));
    enum err err =
        segment_copy(map, old, high_pages, (struct hash_half){.bit = bit, .want = true}, &high);
    if (err != ERR_OK) {
        segment_release(map, &low);
        return err;
    }
    low.depth++;
    high.depth++;
    segment_release(map, old);
    uint32_t high_index = map->segment_count++;
    share_kept_pages(map);
    size_t span = (size_t)1 << (map->depth - old->depth);
    size_t first = directory_slot(map, hash) & ~(span - 1);
    for (size_t i = first + span / 2; i < first + span; i++) {
        map->directory[i] = high_index;
    }
    *old = low;
    map->segments[high_index] = high;
    return ERR_OK;
}

static enum err map_begin(struct live_table *map)
{
    TRY(segments_reserve(map));
    map->directory = map->directory != NULL ? map->directory : calloc(1, sizeof(*map->directory));
    if (map->directory == NULL) {
        return ERR_NO_MEMORY;
    }
    struct live_segment first;
    TRY(segment_init(map, 1, &first));
    map->segments[map->segment_count++] = first;
    share_kept_pages(map);
    return ERR_OK;
}

static NOINLINE void segment_shrink(struct live_table *map, struct live_segment *segment)
{
    uint32_t pages = pages_for(map, segment->used_count, 0);
    pages = max_u64(pages, map->kept_pages);
    // Failing to shrink only costs memory that is allocated already.
    (void)segment_resize(map, segment, pages > 0 ? pages : 1);
}

// Make room for the address of `hash`.
static NOINLINE enum err map_grow(struct live_table *map, uint64_t hash)
{
    if (map->segment_count == 0) {
        return map_begin(map);
    }
    uint32_t index = map->directory[directory_slot(map, hash)];
    struct live_segment *segment = map->segments + index;
    if (segment->page_count >= SEGMENT_PAGES_MAX && segment->depth < DEPTH_MAX) {
        return segment_split(map, index, hash);
    }
    uint32_t wanted = pages_for(map, segment->used_count, 0);
    uint32_t grown = segment->page_count + 1;
    return segment_resize(map, segment, wanted > grown ? wanted : grown);
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
    const uint64_t hash = hash_of(map->seed, key);
    for (;;) {
        struct live_segment *segment = segment_of(map, hash);
        bool is_full = segment->used_count >= segment->page_count * FULL_SLOTS;
        if (!is_full && segment_put(map, segment, slot, hash)) {
            return ERR_OK;
        }
        TRY(map_grow(map, hash));
    }
}

// Add a block whose address fits a slot. `is_first`: the address has no block.
ALWAYS_INLINE enum err
add_slot(struct live_table *map, uint64_t key, const struct live_block *block, bool is_first)
{
    const struct place place = place_of(map, key);
    struct live_slot *found = is_first ? NULL : place_find(&place, key);
    if (UNLIKELY(found != NULL)) {
        return add_generation(map, found, block);
    }
    struct live_slot slot;
    TRY(slot_make(map, key, block, &slot));
    struct live_slot *room = emptier_free_slot(place.home, place.alternate);
    if (LIKELY(room != NULL &&
               place.segment->used_count < place.segment->page_count * FULL_SLOTS)) {
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
        if (UNLIKELY(map->segment_count == 0)) {
            TRY(map_grow(map, hash_of(map->seed, address >> 3)));
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
    if (UNLIKELY(map->segment_count == 0)) {
        return false;
    }
    const struct place place = place_of(map, address >> 3);
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
    if (UNLIKELY(segment->used_count < segment->page_count * SPARSE_SLOTS) &&
        segment->page_count > 1 && segment->page_count > map->kept_pages) {
        segment_shrink(map, segment);
    }
    return true;
}

bool live_table_has(struct live_table *map, uint64_t address)
{
    if (UNLIKELY(!fits_slot(address))) {
        return map_u64_find(&map->odd, address) != NULL;
    }
    if (map->segment_count == 0) {
        return false;
    }
    const struct place place = place_of(map, address >> 3);
    return place_find(&place, address >> 3) != NULL;
}

bool live_table_find(struct live_table *map, uint64_t address, struct live_block *out)
{
    uint32_t box = BOX_NONE;
    if (!fits_slot(address)) {
        const uint32_t *first = map_u64_find(&map->odd, address);
        box = first != NULL ? *first : BOX_NONE;
    } else if (map->segment_count > 0) {
        const struct place place = place_of(map, address >> 3);
        const struct live_slot *slot = place_find(&place, address >> 3);
        if (slot != NULL && (slot->key & KEY_BOXED) == 0) {
            slot_unpack(slot, out);
            return true;
        }
        box = slot != NULL ? (uint32_t)slot->value : BOX_NONE;
    }
    if (box == BOX_NONE) {
        return false;
    }
    *out = map->boxes.items[box].block;
    return true;
}

uint64_t live_table_bytes(const struct live_table *map)
{
    return map->page_count * PAGE_BYTES + (uint64_t)map->boxes.cap * sizeof(struct live_box) +
           (uint64_t)map->segment_cap * sizeof(struct live_segment) +
           (map->directory != NULL ? sizeof(uint32_t) << map->depth : 0) +
           map->odd.slot_count * (sizeof(uint64_t) + sizeof(uint32_t));
}

static bool next_box(const struct live_table *map,
                     struct live_table_position *position,
                     uint64_t *address,
                     struct live_block *block)
{
    const struct live_box *box = map->boxes.items + (position->box - 1);
    *address = position->address;
    *block = box->block;
    position->box = box->next == BOX_NONE ? 0 : box->next + 1;
    return true;
}

bool live_table_next(const struct live_table *map,
                     struct live_table_position *position,
                     uint64_t *address,
                     struct live_block *block)
{
    if (position->box != 0) {
        return next_box(map, position, address, block);
    }
    while (position->segment < map->segment_count) {
        const struct live_segment *segment = map->segments + position->segment;
        if (position->slot == segment->page_count * PAGE_SLOTS) {
            position->segment++;
            position->slot = 0;
            continue;
        }
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
        return true;
    }
    uint32_t box = 0;
    if (!map_u64_next(&map->odd, &position->odd, &position->address, &box)) {
        return false;
    }
    position->box = box + 1;
    return next_box(map, position, address, block);
}

void live_table_renumber(struct live_table *map, const uint32_t *rows)
{
    const uint64_t row_mask = ((uint64_t)1 << ROW_BITS) - 1;
    for (uint32_t i = 0; i < map->segment_count; i++) {
        const size_t slot_count = (size_t)map->segments[i].page_count * PAGE_SLOTS;
        for (size_t k = 0; k < slot_count; k++) {
            struct live_slot *slot = map->segments[i].slots + k;
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
        const struct place place = place_of(map, slot->key & KEY_MASK);
        if (place.segment != segment || place_find(&place, slot->key & KEY_MASK) != slot) {
            return false;
        }
        if ((slot->key & KEY_BOXED) != 0 && slot->value >= map->boxes.count) {
            return false;
        }
    }
    return used == segment->used_count && used <= segment->page_count * FULL_SLOTS;
}

bool live_table_check(const struct live_table *map)
{
    for (uint32_t i = 0; i < map->segment_count; i++) {
        if (map->segments[i].depth > map->depth || !segment_check(map, map->segments + i)) {
            return false;
        }
    }
    struct live_table_position position = {0};
    uint64_t address = 0;
    struct live_block block;
    uint64_t seen = 0;
    while (seen <= map->live_count && live_table_next(map, &position, &address, &block)) {
        seen++;
    }
    return seen == map->live_count;
}
