// SPDX-License-Identifier: MIT
// test_heap: single blocks for the aggregator, as of threads whose books have one event each.
//
//   test_heap_allocate, test_heap_free, test_heap_move      an entry of a book each, or two
//   test_heap_end_process                                   lists its blocks, and ends it
//
// A free finds its block by the address, as by words. The shared sum is exact, because events come
// in their order, and its peak, too. With a list of blocks, the heap tells it what threads send of
// single blocks.
//
// Owns the blocks. A row must be the thread's own. Context: tests, one thread. Failure: as of
// aggregator_book_add.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "aggregate/aggregator.h"
#include "aggregate/block_list.h"
#include "aggregate/books/aggregator_book.h"
#include "base/bucket.h"
#include "base/hash.h"
#include "base/minmax.h"
#include "host/containers/map_u64.h"

struct test_block {
    uint64_t address;
    uint64_t size_bytes;
    uint64_t born_ms;
    uint32_t process;
    uint32_t row;
    uint32_t weight;
    bool is_live;
};
DEFINE_VEC(test_block_vec, struct test_block);

struct test_heap {
    struct aggregator *aggregator; // borrowed
    struct block_list *list;       // borrowed; NULL: none
    struct test_block_vec blocks;
    struct u32_vec unused; // indices of blocks that are not live
    struct map_u64 live;   // process and address -> index in `blocks`
    struct sum_value sum;
};

static inline void test_heap_release(struct test_heap *heap)
{
    test_block_vec_release(&heap->blocks);
    u32_vec_release(&heap->unused);
    map_u64_release(&heap->live);
}

static inline uint64_t test_heap_key(const struct aggregator_process *process, uint64_t address)
{
    return (uint64_t)process->index << 56 ^ address;
}

// Return the live block at the address; NULL: there is none.
static inline struct test_block *
test_heap_find(struct test_heap *heap, const struct aggregator_process *process, uint64_t address)
{
    const uint32_t *index = map_u64_find(&heap->live, test_heap_key(process, address));
    return index != NULL ? heap->blocks.items + *index : NULL;
}

static inline MUST_USE enum err test_heap_put(struct test_heap *heap,
                                              const struct aggregator_process *process,
                                              const struct test_block *block)
{
    const uint64_t key = test_heap_key(process, block->address);
    if (heap->unused.len == 0) {
        TRY(u32_vec_push(&heap->unused, (uint32_t)heap->blocks.len));
        TRY(test_block_vec_resize(&heap->blocks, heap->blocks.len + 1));
    }
    const uint32_t index = heap->unused.items[--heap->unused.len];
    heap->blocks.items[index] = *block;
    return map_u64_put(&heap->live, key, index);
}

static inline MUST_USE enum err test_heap_remove(struct test_heap *heap,
                                                 const struct aggregator_process *process,
                                                 struct test_block *block)
{
    block->is_live = false;
    (void)map_u64_remove(&heap->live, test_heap_key(process, block->address));
    return u32_vec_push(&heap->unused, (uint32_t)(block - heap->blocks.items));
}

// Two blocks with the same name are interchangeable.
static inline struct named_block test_heap_name(const struct test_block *block)
{
    uint64_t hash = hash_mix(block->address);
    hash = hash_mix(hash + block->size_bytes);
    hash = hash_mix(hash + block->born_ms);
    return (struct named_block){.block = {.address = block->address,
                                          .size_bytes = block->size_bytes,
                                          .born_ms = block->born_ms,
                                          .row = block->row},
                                .hash = hash_mix(hash + block->row)};
}

// Define the number by which books name the row: each row has its own.
static inline MUST_USE enum err
test_heap_define(struct test_heap *heap, struct aggregator_thread *thread, uint32_t row)
{
    const struct u32_vec *nodes = &thread->process->book_nodes;
    return row + 1 < nodes->len && nodes->items[row + 1] != REC_NONE
               ? ERR_OK
               : aggregator_book_row(thread, row + 1, 0,
                                     heap->aggregator->totals.rows.rows.items[row].node);
}

static inline struct book_entry
test_heap_entry(const struct test_heap *heap, uint32_t row, uint32_t weight)
{
    return (struct book_entry){.row = row + 1, .peak_number = heap->sum.number, .weight = weight};
}

// Add an entry, and then what the shared sum has.
static inline MUST_USE enum err test_heap_add(struct test_heap *heap,
                                              struct aggregator_thread *thread,
                                              const struct book_entry *entry)
{
    struct aggregator *aggregator = heap->aggregator;
    struct aggregator_process *process = thread->process;
    TRY(aggregator_book_add(aggregator, thread, entry));
    heap->sum.sum_bytes = (int64_t)aggregator->totals.sums.live_bytes;
    if (aggregator->totals.sums.live_bytes > heap->sum.peak_bytes) {
        heap->sum.peak_bytes = aggregator->totals.sums.live_bytes;
        heap->sum.number++;
    }
    aggregator_book_peak(aggregator, &heap->sum, 0);
    process->record.peak_bytes = max_u64(process->record.peak_bytes, process->live_bytes);
    return ERR_OK;
}

// Tell the list of a new block. `was_peak`: it set the latest peak.
static inline MUST_USE enum err
test_heap_list_born(const struct test_heap *heap, const struct test_block *block, bool was_peak)
{
    struct block_list *list = heap->list;
    if (was_peak) {
        list->seen_count = 0; // it is seen at once
        (void)block_list_see_peak(list, heap->sum.number, block->born_ms);
        return block_list_follow(list, heap->sum.number);
    }
    return block->born_ms <= list->peak_ms
               ? block_births_add(&list->births, test_heap_name(block).hash, heap->sum.number)
               : ERR_OK;
}

// Allocate a block that stands for `weight` blocks.
static inline MUST_USE enum err test_heap_choose(struct test_heap *heap,
                                                 struct aggregator_thread *thread,
                                                 uint64_t address,
                                                 uint32_t row,
                                                 uint64_t size_bytes,
                                                 uint32_t weight)
{
    const struct test_block block = {.address = address,
                                     .size_bytes = size_bytes,
                                     .born_ms = heap->aggregator->totals.now_ms,
                                     .process = thread->process->index,
                                     .row = row,
                                     .weight = weight,
                                     .is_live = true};
    const uint32_t number = heap->sum.number;
    struct book_entry entry = test_heap_entry(heap, row, weight);
    entry.size_count = 1;
    entry.size_buckets[0] = (uint8_t)bucket_of(size_bytes);
    entry.sizes[0] = book_cell_with(0, size_bytes);
    TRY(test_heap_define(heap, thread, row));
    TRY(test_heap_add(heap, thread, &entry));
    TRY(test_heap_put(heap, thread->process, &block));
    return heap->list != NULL ? test_heap_list_born(heap, &block, heap->sum.number != number)
                              : ERR_OK;
}

static inline MUST_USE enum err test_heap_allocate(struct test_heap *heap,
                                                   struct aggregator_thread *thread,
                                                   uint64_t address,
                                                   uint32_t row,
                                                   uint64_t size_bytes)
{
    return test_heap_choose(heap, thread, address, row, size_bytes, 1);
}

// `is_temporary`: the thread's latest event allocated a block at this address.
static inline MUST_USE enum err test_heap_free(struct test_heap *heap,
                                               struct aggregator_thread *thread,
                                               uint64_t address,
                                               bool is_temporary)
{
    struct aggregator *aggregator = heap->aggregator;
    struct test_block *block = test_heap_find(heap, thread->process, address);
    if (block == NULL) {
        aggregator_count_unknown(aggregator, thread->process, 1);
        return ERR_OK;
    }
    const uint32_t owner = aggregator->totals.rows.rows.items[block->row].thread;
    struct book_entry entry = test_heap_entry(heap, block->row, block->weight);
    entry.life_count = 1;
    entry.life_buckets[0] = (uint8_t)bucket_of(aggregator->totals.now_ms - block->born_ms);
    entry.lives[0] = book_cell_with(0, block->size_bytes);
    entry.temporary = is_temporary && owner == thread->entry ? entry.lives[0] : 0;
    entry.cohort_count = 1;
    entry.cohorts[0] = entry.lives[0];
    entry.born_ms[0] = block->born_ms;
    TRY(test_heap_add(heap, thread, &entry));
    TRY(test_heap_remove(heap, thread->process, block));
    if (heap->list == NULL) {
        return ERR_OK;
    }
    struct named_block named = test_heap_name(block);
    named.block.freed_ms = aggregator->totals.now_ms;
    return block_list_freed(heap->list, &named);
}

// Free a block, and allocate one that has its contents.
static inline MUST_USE enum err test_heap_move(struct test_heap *heap,
                                               struct aggregator_thread *thread,
                                               uint64_t from,
                                               bool is_temporary,
                                               const struct test_block *to)
{
    const struct test_block *old = test_heap_find(heap, thread->process, from);
    const uint64_t old_bytes = old != NULL ? old->size_bytes : 0;
    TRY(test_heap_free(heap, thread, from, is_temporary));
    TRY(aggregator_grew(heap->aggregator, to->row, old_bytes, to->size_bytes));
    return test_heap_allocate(heap, thread, to->address, to->row, to->size_bytes);
}

// List the live blocks of the process as blocks of the end.
static inline MUST_USE enum err test_heap_list_ending(const struct test_heap *heap,
                                                      const struct aggregator_process *process)
{
    struct block_shares shares = {0};
    enum err err = block_shares_of(heap->list, process->live_blocks, &shares);
    for (size_t i = 0; i < heap->blocks.len && err == ERR_OK; i++) {
        const struct test_block *block = heap->blocks.items + i;
        if (block->is_live && block->process == process->index) {
            const struct named_block named = test_heap_name(block);
            err = block_list_ended(heap->list, &shares, &named, true);
        }
    }
    block_shares_release(&shares);
    return err;
}

static inline MUST_USE enum err
test_heap_end_process(struct test_heap *heap, struct aggregator_process *process, uint64_t end_ms)
{
    const struct aggregator_process_ending ending = {.end_ms = end_ms};
    TRY(heap->list != NULL ? test_heap_list_ending(heap, process) : ERR_OK);
    for (size_t i = 0; i < heap->blocks.len; i++) {
        struct test_block *block = heap->blocks.items + i;
        if (block->is_live && block->process == process->index) {
            TRY(test_heap_remove(heap, process, block));
        }
    }
    return aggregator_process_end(heap->aggregator, process, &ending);
}
