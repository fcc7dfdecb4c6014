// SPDX-License-Identifier: MIT
#include "aggregate/live_blocks/segment_growth.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "aggregate/live_blocks/segment_place.h"
#include "base/minmax.h"

enum {
    PAGE_OF_SLOTS_BYTES = PAGE_SLOTS * sizeof(struct live_slot),
    SEGMENT_PAGES_MAX = 128,
    KICKS_MAX = 200,
};

// A segment that grows has FRESH slots of a page, out of 256. The halves of a split segment begin
// at FRESH plus a number of their own, so that segments do not all grow at the same time: memory
// then depends on the average fill, not on the worst. While the whole map is small, memory matters
// less than the cost of growing.
enum {
    FRESH_SLOTS = 151,
    FRESH_SLOTS_SMALL = 128,
    FRESH_SPREAD = 56,
    SMALL_MAP_BLOCKS = 200000,
};

// All segments together keep 2 MiB even if they are sparse. Many programs fill and empty their heap
// again and again, and would pay for growing each time.
enum {
    KEPT_PAGES = 512
};

static void segment_release(struct live_segments *all, struct live_segment *segment)
{
    (void)munmap(segment->slots,
                 (size_t)segment->page_count * PAGE_OF_SLOTS_BYTES); // the mapping is valid
    all->page_count -= segment->page_count;
    segment->slots = NULL;
    segment->page_count = 0;
}

void live_segments_release(struct live_segments *all)
{
    for (size_t i = 0; i < all->list.len; i++) {
        segment_release(all, all->list.items + i);
    }
    live_segment_vec_release(&all->list);
    free(all->directory);
}

static inline void slots_swap(struct live_slot *a, struct live_slot *b)
{
    struct live_slot kept = *a;
    *a = *b;
    *b = kept;
}

bool live_segment_put(const struct live_segments *all,
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
        hash = hash_of(all->seed, slot.key & KEY_MASK);
        line = alternate_line(segment, hash, line);
    }
    for (uint32_t kick = KICKS_MAX; kick > 0; kick--) {
        slots_swap(moved[kick - 1], &slot);
    }
    return false;
}

// Distribute kept_pages after a segment was added.
static void share_kept_pages(struct live_segments *all)
{
    all->kept_pages = KEPT_PAGES / (uint32_t)all->list.len;
}

static uint64_t used_slots(const struct live_segments *all)
{
    uint64_t used = 0;
    for (size_t i = 0; i < all->list.len; i++) {
        used += all->list.items[i].used_count;
    }
    return used;
}

static uint32_t pages_for(const struct live_segments *all, uint64_t block_count, uint32_t spread)
{
    uint32_t fresh = used_slots(all) < SMALL_MAP_BLOCKS ? FRESH_SLOTS_SMALL : FRESH_SLOTS;
    fresh += spread;
    uint64_t pages = (block_count + fresh - 1) / fresh;
    return pages == 0 ? 1 : (uint32_t)pages;
}

// Make a segment. Forked copies of the recorder do not have the slots.
static enum err
segment_init(struct live_segments *all, uint32_t page_count, struct live_segment *out)
{
    const size_t bytes = (size_t)page_count * PAGE_OF_SLOTS_BYTES;
    void *slots = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (slots == MAP_FAILED) {
        return ERR_NO_MEMORY;
    }
    (void)madvise(slots, bytes, MADV_DONTFORK); // a failure costs memory
    *out = (struct live_segment){.slots = slots, .page_count = page_count};
    all->page_count += page_count;
    return ERR_OK;
}

// Selects the slots of a segment whose hash has `bit` as `want` states. Without a bit: all.
struct hash_half {
    uint64_t bit;
    bool want;
};

// Put the selected slots of `from` into `to`, which is empty.
static bool segment_fill(const struct live_segments *all,
                         struct live_segment *to,
                         const struct live_segment *from,
                         struct hash_half half)
{
    const size_t slot_count = (size_t)from->page_count * PAGE_SLOTS;
    for (size_t i = 0; i < slot_count; i++) {
        const struct live_slot slot = from->slots[i];
        const uint64_t hash = hash_of(all->seed, slot.key & KEY_MASK);
        const bool is_meant = half.bit == 0 || ((hash & half.bit) != 0) == half.want;
        if (slot.key != 0 && is_meant && !live_segment_put(all, to, slot, hash)) {
            return false;
        }
    }
    return true;
}

// Make *out a copy of (a half of) `from` with room for growth.
static enum err segment_copy(struct live_segments *all,
                             const struct live_segment *from,
                             uint32_t page_count,
                             struct hash_half half,
                             struct live_segment *out)
{
    for (;; page_count += 1 + page_count / 16) {
        struct live_segment to;
        TRY(segment_init(all, page_count, &to));
        to.depth = from->depth;
        if (segment_fill(all, &to, from, half)) {
            *out = to;
            return ERR_OK;
        }
        segment_release(all, &to); // a page overflowed: try larger
    }
}

static enum err
segment_resize(struct live_segments *all, struct live_segment *segment, uint32_t pages)
{
    struct live_segment grown;
    TRY(segment_copy(all, segment, pages, (struct hash_half){0}, &grown));
    segment_release(all, segment);
    *segment = grown;
    return ERR_OK;
}

static enum err directory_double(struct live_segments *all)
{
    size_t old_count = (size_t)1 << all->depth;
    uint32_t *directory = malloc(2 * old_count * sizeof(*directory));
    if (directory == NULL) {
        return ERR_NO_MEMORY;
    }
    for (size_t i = 0; i < 2 * old_count; i++) {
        directory[i] = all->directory[i / 2];
    }
    free(all->directory);
    all->directory = directory;
    all->depth++;
    return ERR_OK;
}

// Any even spread over segments is sufficient.
static uint32_t spread_of(uint32_t segment)
{
    return segment * 37 % FRESH_SPREAD;
}

// Split segment `index` by the next bit of the hash.
static enum err segment_split(struct live_segments *all, uint32_t index, uint64_t hash)
{
    TRY(live_segment_vec_reserve(&all->list, 1));
    if (all->list.items[index].depth == all->depth) {
        TRY(directory_double(all));
    }
    struct live_segment *old = all->list.items + index;
    uint64_t bit = (uint64_t)1 << (63 - old->depth);
    uint32_t low_pages = pages_for(all, old->used_count / 2, spread_of(index));
    uint32_t high_pages = pages_for(all, old->used_count / 2, spread_of((uint32_t)all->list.len));
    struct live_segment low;
    struct live_segment high;
    TRY(segment_copy(all, old, low_pages, (struct hash_half){.bit = bit}, &low));
    enum err err =
        segment_copy(all, old, high_pages, (struct hash_half){.bit = bit, .want = true}, &high);
    if (err != ERR_OK) {
        segment_release(all, &low);
        return err;
    }
    low.depth++;
    high.depth++;
    segment_release(all, old);
    uint32_t high_index = (uint32_t)all->list.len++;
    share_kept_pages(all);
    size_t span = (size_t)1 << (all->depth - old->depth);
    size_t first = directory_slot(all, hash) & ~(span - 1);
    for (size_t i = first + span / 2; i < first + span; i++) {
        all->directory[i] = high_index;
    }
    *old = low;
    all->list.items[high_index] = high;
    return ERR_OK;
}

static enum err segments_begin(struct live_segments *all)
{
    TRY(live_segment_vec_reserve(&all->list, 1));
    all->directory = all->directory != NULL ? all->directory : calloc(1, sizeof(*all->directory));
    if (all->directory == NULL) {
        return ERR_NO_MEMORY;
    }
    struct live_segment first;
    TRY(segment_init(all, 1, &first));
    all->list.items[all->list.len++] = first;
    share_kept_pages(all);
    return ERR_OK;
}

void live_segment_shrink(struct live_segments *all, struct live_segment *segment)
{
    uint32_t pages = pages_for(all, segment->used_count, 0);
    pages = max_u64(pages, all->kept_pages);
    // Failing to shrink only costs memory that is allocated already.
    (void)segment_resize(all, segment, pages > 0 ? pages : 1);
}

enum err live_segments_grow(struct live_segments *all, uint64_t hash)
{
    if (all->list.len == 0) {
        return segments_begin(all);
    }
    uint32_t index = all->directory[directory_slot(all, hash)];
    struct live_segment *segment = all->list.items + index;
    if (segment->page_count >= SEGMENT_PAGES_MAX && segment->depth < SEGMENT_DEPTH_MAX) {
        return segment_split(all, index, hash);
    }
    uint32_t wanted = pages_for(all, segment->used_count, 0);
    uint32_t grown = segment->page_count + 1;
    return segment_resize(all, segment, wanted > grown ? wanted : grown);
}
