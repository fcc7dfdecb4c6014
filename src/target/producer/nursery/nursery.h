// SPDX-License-Identifier: MIT
// nursery: holds the blocks of a thread's present tick, and counts a block that its thread frees in
// the same tick instead of sending it.
//
//   allocation --held--> place (by address) --freed in the same tick--> counter (stack, about size)
//        |                  | tick over, or place taken                      | tick over, or place
//        | not held         |                                                | taken
//        v                  v                                                v
//   ALLOC in the ring  ALLOC in the ring                               PAIR(S) in the ring
//
// The recorder shall see each maximum of the live bytes, and the owners of these bytes, as if every
// event had been sent. The ceiling is the thread's sum (allocated less freed) at the highest moment
// that the recorder has seen. While the sum does not exceed the ceiling, no moment can be a new
// maximum, whatever is held. An allocation that passes the ceiling raises it: its moment is the
// high-water mark, until a later allocation passes it. The recorder needs to learn which held
// blocks of a high-water mark were freed since: they are counted as pairs, and listed. So the
// nursery shows the high-water mark before each record that lowers the live bytes, before each
// record that is sent out of turn, and at the tick's end. It sends the held blocks that existed at
// the mark, and then lists those already freed (HIGH_WATER), which are live for just that moment.
// Stamps separate the blocks that existed at the mark from later blocks.
//
// A free of a block whose size is unknown by then counts 0 bytes, so the sum errs on the side of
// high-water marks. To make up for that, the recorder publishes now and then the distance to the
// maximum at a certain TICK. All this is exact while one thread records.
//
// Once several threads record, records that are sent have stamps (stamp.h), because the sum of
// all threads depends on the order of all their events. Then each thread has a budget instead of a
// ceiling: it holds at most the bytes that the recorder allows, and the recorder counts them into
// the bound of the peak. A larger block is sent, and so is the first block of each tick: the thread
// may have got it from the allocator in an earlier tick, while it still held that tick's blocks,
// and then lost its processor. Of blocks that are sent the recorder expects this (peak_bound.h), of
// held ones it knows the budget only. A block that another thread may have freed (freed_table.h)
// does not count as a pair: the nursery sends it as ALLOC_LATE, and also sends the free of the
// block now at its address.
//
// The nursery holds no block beyond its tick: the first event of a new tick sends the remaining
// blocks, then the TICK. The recorder drains the nursery of an idle thread and of a killed one
// (nursery_layout.h explains why this neither loses nor doubles a block).
//
// A lane whose blocks mostly outlive their tick stops holding for a while. Context: T, the lane's
// thread under the guard, not reentrant. nursery_begin comes before any other call; hooks use
// lane_entry.h, which calls it. False: the recording has ended.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bucket.h"
#include "base/compiler.h"
#include "session/layout.h"
#include "session/wire.h"
#include "target/producer/book/book_try.h"
#include "target/producer/lane_producer.h"

#define NURSERY_COUNT_MAX (1u << 19) // pairs in one counter: a full counter is sent at once
#define NURSERY_SIZE_MAX  (1u << 20) // of a held block: larger ones are rare, and matter

// Initialize the nursery of a zeroed lane, after lane_producer_init.
void nursery_init(struct lane_producer *p);

// Do the rest of nursery_begin. `clock`: the session's.
bool nursery_turn(struct lane_producer *p, uint64_t clock) MUST_USE;

// Do the rest of the events.
bool nursery_allocate_slowly(struct lane_producer *p,
                             uint64_t address,
                             uint64_t size_bytes,
                             uint32_t slot) MUST_USE;
// Send at once an allocated block that was chosen at this level, 0: by --sample (sampling_level.h).
// So large a block that it was certain to be chosen is sent as any other.
bool nursery_allocate_sampled(struct lane_producer *p,
                              uint64_t address,
                              uint64_t size_bytes,
                              uint32_t slot,
                              uint32_t level) MUST_USE;
bool nursery_free_elsewhere(struct lane_producer *p, uint64_t address, bool is_temporary) MUST_USE;
bool nursery_coalesce_elsewhere(struct lane_producer *p, struct nursery_block *block, uint64_t kind)
    MUST_USE;

// Send all held blocks and counters: before a stack's slot gets another meaning, and at the end.
bool nursery_flush(struct lane_producer *p);

// Flush, and hold nothing while lane_producer.open_scopes is not 0. The caller sets that.
bool nursery_suspend(struct lane_producer *p);

// Flush after a hook was left half way.
bool nursery_recover(struct lane_producer *p);

// Keep the compiler from moving stores across: a reader that comes after this thread was killed
// sees them in this order.
ALWAYS_INLINE void nursery_fence(void)
{
    atomic_signal_fence(memory_order_seq_cst);
}

// Return the place of a block at `address`.
ALWAYS_INLINE struct nursery_block *nursery_block_of(struct lane_header *lane, uint64_t address)
{
    const uint64_t granule = address >> 4; // most allocators align blocks to 16 bytes
    return lane_nursery_tables(lane)->blocks + ((granule ^ granule >> 12) & (NURSERY_BLOCKS - 1));
}

ALWAYS_INLINE uint64_t nursery_kind(uint32_t slot, uint32_t size)
{
    return (uint64_t)bucket_of(size) << NURSERY_KIND_BUCKET_SHIFT |
           (uint64_t)slot << NURSERY_KIND_SLOT_SHIFT | size;
}

// Return the place of the counter of `key`. It may have another key.
ALWAYS_INLINE struct nursery_counter *nursery_counter_at(struct lane_header *lane, uint64_t key)
{
    const uint32_t index = (uint32_t)(key * 0x9e3779b97f4a7c15u >> 40) & (NURSERY_COUNTERS - 1);
    return lane_nursery_tables(lane)->counters + index;
}

// Whether a held block or a counter may use the stack in `slot`.
ALWAYS_INLINE bool nursery_uses(const struct lane_producer *p, uint32_t slot)
{
    const struct nursery *n = &p->lane->nursery;
    return n->uses[slot % NURSERY_USES] == n->epoch;
}

ALWAYS_INLINE uint64_t nursery_clock(const struct lane_producer *p)
{
    // Relaxed: threads that hand a block to each other synchronize by doing so, and one atomic
    // never runs backwards along such a chain.
    return atomic_load_explicit(&p->session->clock_ms, memory_order_relaxed);
}

ALWAYS_INLINE uint32_t nursery_order(const struct lane_producer *p)
{
    // Relaxed: for the reason given in nursery_clock.
    return atomic_load_explicit(&p->session->order, memory_order_relaxed);
}

// Write a TICK if time has passed since the last one. lane_entry.h calls this first.
ALWAYS_INLINE bool nursery_begin(struct lane_producer *p)
{
    const uint64_t clock = nursery_clock(p);
    return LIKELY(clock == p->clock && nursery_order(p) == p->order) || nursery_turn(p, clock);
}

// Account for a block of `size` bytes that is no longer held.
ALWAYS_INLINE void nursery_leave(struct nursery *n, uint32_t size)
{
    atomic_store_explicit(&n->held_bytes, nursery_relaxed(&n->held_bytes) - size,
                          memory_order_relaxed);
    n->room_bytes += size;
}

// Whether a block of this size may be held, provided that the nursery holds blocks at all.
ALWAYS_INLINE bool nursery_may_hold(const struct nursery *n, uint64_t size_bytes)
{
    return size_bytes - 1 < n->size_max;
}

// Whether a new block of this size is a high-water mark.
ALWAYS_INLINE bool nursery_is_high_water(const struct nursery *n, uint64_t size_bytes)
{
    return (int64_t)size_bytes > n->room_bytes;
}

// Whether a block of that kind existed at a high-water mark that was not shown yet.
ALWAYS_INLINE bool nursery_was_at_high_water(const struct nursery *n, uint64_t kind)
{
    return nursery_is_within(kind, n->high_water_limit);
}

// Return the reading of freed_table that was made when a block was put into that place.
ALWAYS_INLINE uint64_t *nursery_since(struct lane_header *lane, const struct nursery_block *block)
{
    struct nursery_tables *tables = lane_nursery_tables(lane);
    return tables->since + (block - tables->blocks);
}

// Make `block` HELD. Its place contains no block that still has to be sent.
ALWAYS_INLINE void nursery_put(struct lane_producer *p,
                               struct nursery_block *block,
                               uint64_t address,
                               uint32_t size,
                               uint32_t slot)
{
    struct lane_header *lane = p->lane;
    struct nursery *n = &lane->nursery;
    const size_t place = (size_t)(block - lane_nursery_tables(lane)->blocks);
    if (UNLIKELY(p->is_ordered)) {
        // If it was allocated earlier, another thread may have freed it since.
        *nursery_since(lane, block) =
            LIKELY(p->given_stamp == 0) ? freed_table_latest(p->freed, address) : p->given_stamp;
    }
    n->touched[place / 64] |= (uint64_t)1 << place % 64;
    n->uses[slot % NURSERY_USES] = (uint8_t)n->epoch;
    block->kind = nursery_kind(slot, size) | n->stamp;
    nursery_fence();
    block->place = address;
    nursery_fence();
    atomic_store_explicit(&n->held_bytes, nursery_relaxed(&n->held_bytes) + size,
                          memory_order_relaxed);
    n->room_bytes -= size;
    n->hold_count++;
    n->last_allocated = address;
}

// Whether a block can do without a stamp: no thread freed its address after the latest stamp that
// this thread sent in this tick, so that stamp is in the right order with all events of the
// address. The block counts from that moment on, which is too early (peak_bound.h).
ALWAYS_INLINE bool
nursery_needs_no_stamp(const struct lane_producer *p, uint64_t address, uint64_t size_bytes)
{
    return p->is_ordered && size_bytes - 1 < p->early_bytes && p->given_stamp == 0 &&
           freed_table_latest(p->freed, address) <= p->latest_stamp;
}

// Reserve two words for a block of at most WIRE_SIZE_MAX bytes, after its stamp if it needs one.
ALWAYS_INLINE uint64_t *
nursery_reserve_block(struct lane_producer *p, uint64_t address, uint64_t size_bytes)
{
    if (UNLIKELY(nursery_needs_no_stamp(p, address, size_bytes))) {
        p->early_bytes -= size_bytes;
        return lane_producer_reserve(p, 2);
    }
    return lane_producer_reserve_event(p, 2);
}

// Send a block of at most WIRE_SIZE_MAX bytes, while nothing is held.
ALWAYS_INLINE bool
nursery_pass_block(struct lane_producer *p, uint64_t address, uint64_t size_bytes, uint32_t slot)
{
    uint64_t *word = nursery_reserve_block(p, address, size_bytes);
    if (UNLIKELY(word == NULL)) {
        return false;
    }
    word[0] = wire_word(WIRE_ALLOC, address);
    word[1] = wire_slot_size(slot, size_bytes);
    lane_producer_advance(p, 2);
    lane_producer_publish(p);
    p->lane->nursery.last_allocated = address;
    return true;
}

// Record an allocated block; `slot` names its stack.
ALWAYS_INLINE bool
nursery_allocate(struct lane_producer *p, uint64_t address, uint64_t size_bytes, uint32_t slot)
{
    const struct nursery *n = &p->lane->nursery;
    if (book_is_kept(p)) {
        return LIKELY(p->given_stamp == 0)
                   ? (p->directory != NULL && book_try_allocate(p, address, size_bytes, slot)) ||
                         book_allocate(p, address, size_bytes, slot)
                   : book_allocate_later(p, address, size_bytes, slot);
    }
    if (n->is_holding == 0 && LIKELY(size_bytes <= WIRE_SIZE_MAX)) {
        return nursery_pass_block(p, address, size_bytes, slot);
    }
    struct nursery_block *block = nursery_block_of(p->lane, address);
    if (UNLIKELY(block->place != 0 || !nursery_may_hold(n, size_bytes) ||
                 nursery_is_high_water(n, size_bytes))) {
        return nursery_allocate_slowly(p, address, size_bytes, slot);
    }
    nursery_put(p, block, address, (uint32_t)size_bytes, slot);
    return true;
}

// Count a HELD block in the counter of its kind, as allocated and freed.
ALWAYS_INLINE void nursery_count(struct nursery *n,
                                 struct nursery_counter *counter,
                                 struct nursery_block *block,
                                 uint64_t kind)
{
    const uint64_t sums = counter->sums; // read once: the fences would cause further reads
    const uint64_t address = block->place;
    const uint32_t size = nursery_size(kind);
    block->kind = kind; // a reader after a kill finds the counter by it
    n->mark = sums;
    nursery_fence();
    block->place = nursery_place(address, NURSERY_COALESCING);
    nursery_fence();
    counter->sums = sums + ((uint64_t)size << WIRE_PAIRS_BITS) + 1;
    nursery_fence();
    block->place = 0;
    nursery_fence();
    nursery_leave(n, size);
}

// Return the kind of a block that is freed.
ALWAYS_INLINE uint64_t nursery_freed_kind(const struct nursery_block *block, bool is_temporary)
{
    return block->kind | (uint64_t)is_temporary << NURSERY_KIND_TEMPORARY_SHIFT;
}

// Return the counter that counts blocks of that kind; NULL if it is full or has another key.
ALWAYS_INLINE struct nursery_counter *nursery_counter_of(struct lane_header *lane, uint64_t kind)
{
    const uint64_t key = nursery_counter_key(kind);
    struct nursery_counter *counter = nursery_counter_at(lane, key);
    return LIKELY(counter->key == key && wire_pairs_count(counter->sums) < NURSERY_COUNT_MAX)
               ? counter
               : NULL;
}

// Whether another thread may have freed a HELD block.
ALWAYS_INLINE bool nursery_is_doubtful(const struct lane_producer *p,
                                       const struct nursery_block *block)
{
    if (LIKELY(!p->is_ordered)) {
        return false;
    }
    const uint64_t since = *nursery_since(p->lane, block);
    const uint64_t latest = freed_table_latest(p->freed, block->place);
    const bool is_noted_by_us =
        p->given_stamp != 0 && latest == p->given_stamp && p->given_latest == since;
    return UNLIKELY(latest != since) && !is_noted_by_us;
}

// Count a HELD block that is about to be freed.
ALWAYS_INLINE bool
nursery_coalesce(struct lane_producer *p, struct nursery_block *block, bool is_temporary)
{
    const uint64_t kind = nursery_freed_kind(block, is_temporary);
    struct nursery_counter *counter = nursery_counter_of(p->lane, kind);
    if (UNLIKELY(counter == NULL || nursery_was_at_high_water(&p->lane->nursery, kind) ||
                 nursery_is_doubtful(p, block))) {
        return nursery_coalesce_elsewhere(p, block, kind);
    }
    nursery_count(&p->lane->nursery, counter, block, kind);
    return true;
}

// Send the free of a block that is not held.
ALWAYS_INLINE bool nursery_pass_free(struct lane_producer *p, uint64_t address, bool is_temporary)
{
    uint64_t *word = lane_producer_reserve_event(p, 1);
    if (UNLIKELY(word == NULL)) {
        return false;
    }
    if (UNLIKELY(p->is_ordered) && LIKELY(p->freed != NULL)) {
        (void)freed_table_note(p->freed, address, word[-1] >> 8); // before the allocator is called
    }
    word[0] = wire_word(is_temporary ? WIRE_FREE_TEMPORARY : WIRE_FREE, address);
    lane_producer_advance(p, 1);
    lane_producer_publish(p);
    return true;
}

// Record the free of a block, before the allocator is called.
ALWAYS_INLINE bool nursery_free(struct lane_producer *p, uint64_t address)
{
    struct nursery *n = &p->lane->nursery;
    if (book_is_kept(p)) {
        return (p->directory != NULL && book_try_free(p, address)) || book_free(p, address);
    }
    const bool is_temporary = n->last_allocated == address;
    n->last_allocated = 0;
    if (n->is_holding == 0) {
        return nursery_pass_free(p, address, is_temporary);
    }
    struct nursery_block *block = nursery_block_of(p->lane, address);
    if (LIKELY(block->place == address)) {
        return nursery_coalesce(p, block, is_temporary);
    }
    return nursery_free_elsewhere(p, address, is_temporary);
}

// Note an unrecorded event of the thread: its next free does not end a temporary allocation.
ALWAYS_INLINE void nursery_forget_latest(struct lane_producer *p)
{
    p->lane->nursery.last_allocated = 0;
}

// Return the stamp of a reallocation that begins. Call nursery_begin before, for a thread that has
// not recorded yet. The caller announces it as LANE_PENDING_REALLOC until the reallocation is sent:
// the recorder waits with what other threads do with the address meanwhile. 0: nothing is to be
// announced, because the thread keeps a book.
uint64_t nursery_move_stamp(const struct lane_producer *p) MUST_USE;

// Note that the block at `address` is about to be reallocated, once `stamp` is announced. Return
// the moment of the old block's free.
struct freed_note nursery_begin_move(struct lane_producer *p, uint64_t address, uint64_t stamp)
    MUST_USE;

// Record a reallocation; `slot` names the new block's stack, `freed` is from nursery_begin_move.
bool nursery_reallocate(struct lane_producer *p,
                        uint64_t old_address,
                        uint64_t address,
                        uint64_t size_bytes,
                        uint32_t slot,
                        struct freed_note freed) MUST_USE;
