// SPDX-License-Identifier: MIT
#include "aggregate/block_list.h"

#include "base/hash.h"
#include "base/order.h"
#include "session/wire.h"

void block_list_release(struct block_list *list)
{
    map_u64_release(&list->after);
    rec_block_vec_release(&list->freed);
    ended_block_vec_release(&list->ended);
}

// Follow a new peak: all live blocks were live at it, and no block that was freed before.
static void follow_peak(struct block_list *list, uint64_t peak_number)
{
    if (list->peak_number != peak_number) {
        list->peak_number = peak_number;
        list->peak_ms = list->latest_born_ms; // no block before the peak was born later
        list->freed_omitted = 0;
        map_u64_clear(&list->after);
        rec_block_vec_clear(&list->freed);
    }
}

// Return a hash: two blocks with the same hash are interchangeable.
static uint64_t
identity(const struct block_list *list, uint64_t address, const struct live_block *block)
{
    uint64_t hash = hash_mix(address + list->seed);
    hash = hash_mix(hash + block->size_bytes);
    hash = hash_mix(hash + block->born_ms);
    return hash_mix(hash + block->row);
}

// Note an allocation, after all sums were raised.
static enum err note_allocation(struct block_list *list, const struct observed_event *what)
{
    const struct live_block *block = what->block;
    if (block->born_ms > list->latest_born_ms) {
        list->latest_born_ms = block->born_ms;
    }
    follow_peak(list, what->peak_number);
    if (what->peak_number != what->peak_before || block->born_ms > list->peak_ms) {
        return ERR_OK; // it made the peak, or its birth shows that it is later
    }
    const uint64_t key = identity(list, what->event.address, block);
    const uint32_t *count = map_u64_find(&list->after, key);
    return map_u64_put(&list->after, key, count != NULL ? *count + 1 : 1);
}

// Return whether a freed block was live at the peak. Removes it from `after` if it came later.
static bool was_at_peak(struct block_list *list, uint64_t address, const struct live_block *block)
{
    if (list->peak_number == 0 || block->born_ms > list->peak_ms) {
        return false;
    }
    if (map_u64_count(&list->after) == 0) {
        return true;
    }
    const uint64_t key = identity(list, address, block);
    uint32_t *count = map_u64_find(&list->after, key);
    if (count == NULL) {
        return true;
    }
    if (--*count == 0) {
        (void)map_u64_remove(&list->after, key); // it was just found
    }
    return false;
}

static struct rec_block listed(uint64_t address, const struct live_block *block)
{
    return (struct rec_block){.address = address & ~WIRE_CUSTOM_BLOCK,
                              .size_bytes = block->size_bytes,
                              .born_ms = block->born_ms,
                              .row = block->row};
}

static enum err note_free(struct block_list *list, const struct observed_event *what)
{
    follow_peak(list, what->peak_number);
    if (!was_at_peak(list, what->event.address, what->block)) {
        return ERR_OK;
    }
    if (list->freed.len >= BLOCKS_LISTED_MAX) {
        list->freed_omitted++;
        return ERR_OK;
    }
    struct rec_block entry = listed(what->event.address, what->block);
    entry.flags = REC_BLOCK_PEAK;
    entry.freed_ms = what->event.time_ms;
    return rec_block_vec_push(&list->freed, entry);
}

// Return the largest power of two that each row may keep so that all rows together keep at most
// `room`.
static uint64_t share_of_row(const struct row_table *rows, uint64_t room)
{
    uint64_t share = (uint64_t)1 << 32;
    for (; share > 1; share /= 2) {
        uint64_t sum = 0;
        for (size_t i = 0; i < rows->rows.len && sum <= room; i++) {
            const struct rec_row *row = &rows->rows.items[i];
            const uint64_t live = row->allocations - row->frees;
            sum += live < share ? live : share;
        }
        if (sum <= room) {
            break;
        }
    }
    return share;
}

enum err block_list_ended(struct block_list *list,
                          uint64_t peak_number,
                          const struct row_table *rows,
                          const struct live_map *live)
{
    follow_peak(list, peak_number);
    const uint64_t room = BLOCKS_LISTED_MAX - list->ended.len;
    const uint64_t share = share_of_row(rows, room);
    const bool is_short = live->live_count > room;
    CLEANUP(u32_vec_release) struct u32_vec kept = {0};
    TRY(u32_vec_resize(&kept, is_short ? rows->rows.len : 0));
    struct live_map_position position = {0};
    uint64_t address = 0;
    struct live_block block = {0};
    while (live_map_next(live, &position, &address, &block)) {
        const bool is_at_peak = was_at_peak(list, address, &block);
        if (list->ended.len >= BLOCKS_LISTED_MAX ||
            (is_short && kept.items[block.row]++ >= share)) {
            list->ended_omitted++;
            continue;
        }
        struct ended_block entry = {.block = listed(address, &block),
                                    .peak_number = is_at_peak ? list->peak_number : 0};
        entry.block.flags = REC_BLOCK_END;
        TRY(ended_block_vec_push(&list->ended, entry));
    }
    return ERR_OK;
}

static int compare_blocks(const void *left, const void *right)
{
    const struct rec_block *a = left;
    const struct rec_block *b = right;
    return order_u64(a->row, b->row)
               ?: order_u64(a->address, b->address)
               ?: order_u64(a->born_ms, b->born_ms);
}

enum err
block_list_collect(const struct block_list *list, uint64_t peak_number, struct rec_block_vec *out)
{
    TRY(rec_block_vec_reserve(out, list->ended.len + list->freed.len));
    for (size_t i = 0; i < list->ended.len; i++) {
        struct rec_block block = list->ended.items[i].block;
        if (peak_number != 0 && list->ended.items[i].peak_number == peak_number) {
            block.flags |= REC_BLOCK_PEAK;
        }
        TRY(rec_block_vec_push(out, block));
    }
    for (size_t i = 0; list->peak_number == peak_number && i < list->freed.len; i++) {
        TRY(rec_block_vec_push(out, list->freed.items[i]));
    }
    rec_block_vec_sort(out, compare_blocks);
    return ERR_OK;
}

static enum err observe_block(void *context, const struct observed_event *what)
{
    struct block_list *list = context;
    if (what->live != NULL) {
        return block_list_ended(list, what->peak_number, list->rows, what->live);
    }
    if (what->block == NULL) {
        return ERR_OK;
    }
    return what->event.kind == REC_EVENT_ALLOCATION ? note_allocation(list, what)
                                                    : note_free(list, what);
}

struct observer block_list_observer(struct block_list *list)
{
    return (struct observer){.context = list, .observe = observe_block};
}
