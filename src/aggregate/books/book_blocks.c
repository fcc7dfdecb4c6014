// SPDX-License-Identifier: MIT
#include "aggregate/books/book_blocks.h"

#include "aggregate/aggregator.h"
#include "aggregate/books/aggregator_book.h"
#include "base/hash.h"
#include "base/minmax.h"

void book_blocks_release(struct book_blocks *blocks)
{
    freed_block_vec_release(&blocks->freed);
}

// Return the hash of a block: two with the same hash are interchangeable.
static uint64_t
hash_of(const struct block_list *list, uint32_t process, const struct word_block *block)
{
    uint64_t hash = hash_mix(block->address + list->seed);
    hash = hash_mix(hash + block->size_bytes);
    hash = hash_mix(hash + block_birth_stated(block->birth_ms, block->size_bytes));
    return hash_mix(hash + ((uint64_t)process << WORD_ROW_BITS | block->row));
}

static struct named_block
name_block(struct block_list *list, uint32_t process, const struct word_block *block, uint32_t row)
{
    list->birth_error_ms =
        max_u64(list->birth_error_ms, block_birth_error_ms(block->birth_ms, block->size_bytes));
    return (struct named_block){.block = {.address = block->address,
                                          .size_bytes = block->size_bytes,
                                          .born_ms = block->birth_ms,
                                          .row = row},
                                .hash = hash_of(list, process, block)};
}

enum err book_blocks_born(struct book_blocks *blocks,
                          const struct aggregator_process *process,
                          const struct word_block *block,
                          uint32_t peak_number)
{
    struct block_list *list = blocks->list;
    return peak_number >= list->peak_number
               ? block_births_add(&list->births, hash_of(list, process->index, block), peak_number)
               : ERR_OK;
}

enum err book_blocks_freed(struct book_blocks *blocks, const struct freed_block *freed)
{
    if (freed->peak_number < blocks->list->peak_number) {
        return ERR_OK;
    }
    if (blocks->freed.len >= BOOK_BLOCKS_WAIT_MAX) {
        blocks->unnamed++;
        return ERR_OK;
    }
    return freed_block_vec_push(&blocks->freed, *freed);
}

bool book_blocks_see_peak(struct book_blocks *blocks, uint32_t peak_number, uint64_t now_ms)
{
    const bool is_new =
        peak_number > blocks->seen_number && block_list_see_peak(blocks->list, peak_number, now_ms);
    blocks->seen_number = is_new ? peak_number : blocks->seen_number;
    return is_new;
}

static void find_row(const struct aggregator *aggregator, struct freed_block *freed)
{
    const struct aggregator_process *process = aggregator->processes.items[freed->process];
    freed->row =
        freed->row == REC_NONE ? aggregator_book_row_of(process, freed->block.row) : freed->row;
}

static enum err list_freed(struct book_blocks *blocks, const struct freed_block *freed)
{
    if (freed->row == REC_NONE) {
        blocks->unnamed++;
        return ERR_OK;
    }
    struct named_block named = name_block(blocks->list, freed->process, &freed->block, freed->row);
    named.block.freed_ms = freed->freed_ms;
    return block_list_freed(blocks->list, &named);
}

enum err book_blocks_end_pass(struct aggregator *aggregator, bool is_last)
{
    struct book_blocks *blocks = aggregator->blocks;
    const struct block_list *list = blocks->list;
    size_t kept = 0;
    for (size_t i = 0; i < blocks->freed.len; i++) {
        struct freed_block freed = blocks->freed.items[i];
        if (freed.peak_number < list->peak_number) {
            continue; // it was not there any more
        }
        find_row(aggregator, &freed);
        const bool is_running = !aggregator->processes.items[freed.process]->is_ended;
        const bool waits = !freed.is_of_earlier_pass || freed.peak_number > list->peak_number ||
                           (freed.row == REC_NONE && is_running);
        if (!waits || is_last) {
            TRY(list_freed(blocks, &freed));
            continue;
        }
        freed.is_of_earlier_pass = true;
        blocks->freed.items[kept++] = freed;
    }
    blocks->freed.len = kept;
    return ERR_OK;
}

void book_blocks_end_process(struct aggregator *aggregator,
                             const struct aggregator_process *process)
{
    struct freed_block_vec *freed = &aggregator->blocks->freed;
    for (size_t i = 0; i < freed->len; i++) {
        if (freed->items[i].process == process->index) {
            find_row(aggregator, freed->items + i);
        }
    }
}

enum err book_blocks_live(struct aggregator *aggregator,
                          const struct aggregator_process *process,
                          const struct word_block *block,
                          struct block_shares *shares,
                          bool was_there)
{
    struct book_blocks *blocks = aggregator->blocks;
    const uint32_t row = aggregator_book_row_of(process, block->row);
    if (row == REC_NONE) {
        blocks->unnamed++;
        return ERR_OK;
    }
    const struct named_block named = name_block(blocks->list, process->index, block, row);
    return block_list_ended(blocks->list, shares, &named, was_there);
}
