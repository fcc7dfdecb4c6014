// SPDX-License-Identifier: MIT
#include "aggregate/block_list.h"

#include <string.h>

#include "base/minmax.h"
#include "base/order.h"
#include "session/wire.h"

void block_list_release(struct block_list *list)
{
    block_births_release(&list->births);
    rec_block_vec_release(&list->freed);
    ended_block_vec_release(&list->ended);
}

bool block_list_see_peak(struct block_list *list, uint64_t peak_number, uint64_t ms)
{
    if (list->seen_count == PEAKS_SEEN_MAX) {
        return false;
    }
    list->seen[list->seen_count++] = (struct peak_seen){.number = peak_number, .ms = ms};
    return true;
}

enum err block_list_follow(struct block_list *list, uint64_t peak_number)
{
    uint32_t earlier = 0;
    while (earlier < list->seen_count && list->seen[earlier].number < peak_number) {
        earlier++;
    }
    list->seen_count -= earlier;
    memmove(list->seen, list->seen + earlier, list->seen_count * sizeof(*list->seen));
    list->peak_ms = list->seen_count != 0 ? list->seen[0].ms : UINT64_MAX;
    if (list->peak_number == peak_number) {
        return ERR_OK;
    }
    list->peak_number = peak_number; // all live blocks were live at it, and none freed before
    list->freed_omitted = 0;
    rec_block_vec_clear(&list->freed);
    return block_births_follow(&list->births, peak_number);
}

// Return whether a block that has not left the heap before the peak was live at it. *death_ms is
// when it was freed; or becomes the time when an equal one was that was live at the peak instead.
static bool
was_at_peak(struct block_list *list, const struct named_block *named, uint64_t *death_ms)
{
    return list->peak_number != 0 && named->block.born_ms <= list->peak_ms &&
           !block_births_take(&list->births, named->hash, death_ms);
}

static struct rec_block listed(const struct named_block *named, uint32_t flags)
{
    struct rec_block block = named->block;
    block.address &= ~WIRE_CUSTOM_BLOCK;
    block.flags = flags;
    return block;
}

static MUST_USE enum err
list_freed(struct block_list *list, const struct named_block *named, uint64_t freed_ms)
{
    if (list->freed.len >= BLOCKS_LISTED_MAX) {
        list->freed_omitted++;
        return ERR_OK;
    }
    struct rec_block block = listed(named, REC_BLOCK_PEAK);
    block.freed_ms = max_u64(freed_ms, block.born_ms); // a hostile program may state anything
    return rec_block_vec_push(&list->freed, block);
}

enum err block_list_freed(struct block_list *list, const struct named_block *named)
{
    uint64_t death_ms = named->block.freed_ms;
    return was_at_peak(list, named, &death_ms) ? list_freed(list, named, death_ms) : ERR_OK;
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

void block_shares_release(struct block_shares *shares)
{
    u32_vec_release(&shares->kept);
}

enum err
block_shares_of(const struct block_list *list, uint64_t live_count, struct block_shares *out)
{
    const uint64_t room = BLOCKS_LISTED_MAX - list->ended.len;
    out->is_short = live_count > room;
    out->each = out->is_short ? share_of_row(list->rows, room) : UINT64_MAX;
    return u32_vec_resize(&out->kept, out->is_short ? list->rows->rows.len : 0);
}

enum err block_list_ended(struct block_list *list,
                          struct block_shares *shares,
                          const struct named_block *named,
                          bool was_there)
{
    uint64_t death_ms = DEATH_NEVER;
    bool is_at_peak = was_there && was_at_peak(list, named, &death_ms);
    if (death_ms != DEATH_NEVER) {
        TRY(list_freed(list, named, death_ms));
        is_at_peak = false;
    }
    if (list->ended.len >= BLOCKS_LISTED_MAX ||
        (shares->is_short && shares->kept.items[named->block.row]++ >= shares->each)) {
        list->ended_omitted++;
        return ERR_OK;
    }
    return ended_block_vec_push(
        &list->ended, (struct ended_block){.block = listed(named, REC_BLOCK_END),
                                           .peak_number = is_at_peak ? list->peak_number : 0});
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

// Remove `flag` if the row has no more such blocks. Return whether it was removed.
static bool clip(struct rec_block *block, uint32_t flag, uint64_t *left)
{
    const bool has = (block->flags & flag) != 0;
    const bool is_removed = has && *left == 0;
    *left -= has && !is_removed;
    block->flags &= is_removed ? ~flag : ~0u;
    return is_removed;
}

uint64_t block_list_clip(const struct row_table *rows, struct rec_block_vec *blocks)
{
    uint64_t removed = 0;
    uint64_t live = 0;
    uint64_t at_peak = 0;
    size_t kept = 0;
    uint32_t row_before = REC_NONE;
    for (size_t i = 0; i < blocks->len; i++) {
        struct rec_block block = blocks->items[i];
        if (block.row != row_before) {
            const struct rec_row *row = rows->rows.items + block.row;
            live = row->allocations - row->frees;
            at_peak = row->peak_blocks;
            row_before = block.row;
        }
        const bool is_uncounted = clip(&block, REC_BLOCK_END, &live);
        block.flags = is_uncounted ? 0 : block.flags; // when it was freed is unknown
        removed += is_uncounted;
        removed += clip(&block, REC_BLOCK_PEAK, &at_peak);
        if (block.flags != 0) {
            blocks->items[kept++] = block;
        }
    }
    blocks->len = kept;
    return removed;
}
