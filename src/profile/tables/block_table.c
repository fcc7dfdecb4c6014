// SPDX-License-Identifier: MIT
#include "profile/tables/block_table.h"

#include "base/compiler.h"
#include "base/order.h"

static int compare_blocks(const void *left, const void *right, void *context)
{
    const struct rec_block *blocks = context;
    const struct rec_block *a = &blocks[*(const uint32_t *)left];
    const struct rec_block *b = &blocks[*(const uint32_t *)right];
    return order_u64(b->size_bytes, a->size_bytes) ?: order_u64(a->address, b->address);
}

static enum err
collect_blocks(const struct selection *selection, uint32_t flag, struct block_table *table)
{
    const struct recording *recording = &selection->profile->recording;
    size_t at = 0; // selected rows and blocks are both sorted by row
    for (uint32_t i = 0; i < recording->block_count; i++) {
        const struct rec_block *block = &recording->blocks[i];
        while (at < selection->rows.len && selection->rows.items[at] < block->row) {
            at++;
        }
        const bool is_selected =
            at < selection->rows.len && selection->rows.items[at] == block->row;
        if (is_selected && (block->flags & flag) != 0 &&
            bucket_range_has(selection->sizes, rec_bucket_of(block->size_bytes))) {
            TRY(u32_vec_push(&table->blocks, i));
            table->bytes += block->size_bytes;
        }
    }
    u32_vec_sort_by(&table->blocks, compare_blocks, recording->blocks);
    return ERR_OK;
}

enum err block_table_build(const struct selection *selection,
                           const struct filter *filter,
                           uint32_t flag,
                           struct block_table *out,
                           struct err_info *info)
{
    if (filter->has_range || filter->has_lifetimes) {
        return err_set(info, ERR_UNSUPPORTED,
                       "single blocks cannot be picked by a range of time or of lifetimes");
    }
    CLEANUP(block_table_release) struct block_table table = {0};
    TRY(collect_blocks(selection, flag, &table));
    *out = TAKE(table);
    return ERR_OK;
}

void block_table_release(struct block_table *table)
{
    u32_vec_release(&table->blocks);
}

bool block_table_is_recorded(const struct profile *profile)
{
    const struct recording *recording = &profile->recording;
    return recording->block_count > 0 || rec_counter_find(recording, "blocks_left_out") != NULL;
}

uint64_t block_age_ms(const struct profile *profile, uint32_t block, uint32_t flag)
{
    const struct recording *recording = &profile->recording;
    const struct rec_block *b = &recording->blocks[block];
    const uint32_t process = recording->threads[recording->rows[b->row].thread].process;
    const uint64_t then_ms = flag == REC_BLOCK_PEAK ? recording->totals.peak_time_ms
                                                    : recording->processes[process].end_ms;
    return then_ms > b->born_ms ? then_ms - b->born_ms : 0;
}
