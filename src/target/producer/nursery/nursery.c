// SPDX-License-Identifier: MIT
// nursery: see nursery.h. This file handles the events, and sends what must precede them.
// nursery_send.c sends; nursery_turn.c manages the tables.
#include "target/producer/nursery/nursery.h"

#include "target/producer/nursery/nursery_send.h"

// Give a counter to another key, and send its counts.
static bool use_counter(struct lane_producer *p, struct nursery_counter *counter, uint64_t key)
{
    if (counter->key != 0 && !nursery_send_counter(p, counter)) {
        return false;
    }
    const uint32_t index = (uint32_t)(counter - lane_nursery_tables(p->lane)->counters);
    p->lane->nursery.counters_used[index / 64] |= (uint64_t)1 << index % 64;
    counter->sums = 0;
    nursery_fence();
    counter->key = key;
    nursery_fence();
    return true;
}

// Count a HELD block as a pair. Its counter may count other pairs, or be full.
static bool count_pair(struct lane_producer *p, struct nursery_block *block, uint64_t kind)
{
    const uint64_t key = nursery_counter_key(kind);
    struct nursery_counter *counter = nursery_counter_at(p->lane, key);
    const bool is_full = wire_pairs_count(counter->sums) >= NURSERY_COUNT_MAX;
    if ((counter->key != key || is_full) && !use_counter(p, counter, key)) {
        return false;
    }
    nursery_count(&p->lane->nursery, counter, block, kind);
    return true;
}

// Forget the block at `address` if it was sent and its size is known, and subtract it from the sum.
static void forget_sent(struct nursery *n, struct nursery_block *block, uint64_t address)
{
    if (block->place == nursery_place(address, NURSERY_SENT)) { // not if events have stamps
        block->place = 0;
        n->room_bytes += (uint32_t)block->kind;
    }
}

// Send the free of a block that was sent.
static bool
send_free(struct lane_producer *p, struct nursery_block *block, uint64_t address, bool is_temporary)
{
    if (UNLIKELY(!nursery_show_high_water(p) || !nursery_pass_free(p, address, is_temporary))) {
        return false;
    }
    forget_sent(&p->lane->nursery, block, address);
    return true;
}

// Remove a HELD block that existed at the high-water mark.
static bool leave_high_water(struct lane_producer *p, struct nursery_block *block, uint64_t kind)
{
    struct nursery *n = &p->lane->nursery;
    const uint64_t address = block->place;
    if (n->freed_count == NURSERY_FREED_MAX) {
        // The mark is shown while the block still exists, so the block is sent.
        return nursery_show_high_water(p) &&
               send_free(p, block, address, nursery_is_temporary(kind));
    }
    n->leaving = address | (uint64_t)n->freed_count << NURSERY_LEAVING_SHIFT;
    nursery_fence();
    lane_nursery_tables(p->lane)->freed[n->freed_count] =
        wire_slot_size(nursery_slot(kind), nursery_size(kind));
    n->freed_count++;
    nursery_fence();
    const bool is_counted = count_pair(p, block, kind);
    nursery_fence();
    n->leaving = 0;
    return is_counted;
}

// Send a block and a free that may not belong together: the freed block may be another one at the
// same address, and this one freed already. The recorder finds out.
static bool part_with(struct lane_producer *p, struct nursery_block *block, uint64_t kind)
{
    const uint64_t address = block->place;
    return nursery_send_block(p, block) &&
           nursery_pass_free(p, address, nursery_is_temporary(kind));
}

bool nursery_coalesce_elsewhere(struct lane_producer *p, struct nursery_block *block, uint64_t kind)
{
    if (nursery_is_doubtful(p, block)) {
        return part_with(p, block, kind);
    }
    return nursery_was_at_high_water(&p->lane->nursery, kind) ? leave_high_water(p, block, kind)
                                                              : count_pair(p, block, kind);
}

// Send the held block at the place of another block. If it did not exist at the high-water mark, it
// must not precede the mark.
static bool make_place(struct lane_producer *p, struct nursery_block *block)
{
    const struct nursery *n = &p->lane->nursery;
    if (!nursery_is_held(block)) {
        return true;
    }
    return (nursery_was_at_high_water(n, block->kind) || nursery_show_high_water(p)) &&
           nursery_send_block(p, block);
}

static bool
send_allocation(struct lane_producer *p, uint64_t address, uint64_t size_bytes, uint32_t slot)
{
    if (LIKELY(size_bytes <= WIRE_SIZE_MAX)) {
        return nursery_pass_block(p, address, size_bytes, slot);
    }
    uint64_t *word = lane_producer_reserve_event(p, 3);
    if (UNLIKELY(word == NULL)) {
        return false;
    }
    word[0] = wire_word(WIRE_ALLOC_LARGE, address);
    word[1] = wire_slot_size(slot, 0);
    word[2] = size_bytes;
    lane_producer_advance(p, 3);
    lane_producer_publish(p);
    p->lane->nursery.last_allocated = address;
    return true;
}

// Prepare to send a block at once: if the held blocks are a new maximum, show it first, so that the
// recorder sees it unchanged.
static bool prepare_to_send(struct lane_producer *p, uint64_t size_bytes)
{
    const struct nursery *n = &p->lane->nursery;
    return nursery_show_high_water(p) &&
           (n->is_ordered != 0 || !nursery_is_high_water(n, size_bytes) ||
            nursery_relaxed(&n->held_bytes) == 0 || nursery_send_blocks(p));
}

// Count a sent block of `size_bytes`.
static void rise(struct nursery *n, uint64_t size_bytes)
{
    n->trade.blocks++;
    n->trade.records++;
    if (n->is_ordered == 0) {
        n->room_bytes -= (int64_t)size_bytes;
        nursery_lift_ceiling(n);
    } else if (n->room_bytes == NURSERY_NOTHING_SENT) {
        n->room_bytes = (int64_t)nursery_relaxed(&n->budget_bytes);
    }
}

// Hold a block that sets a new high-water mark. Blocks freed before did not exist at it.
static bool climb(struct lane_producer *p,
                  struct nursery_block *block,
                  uint64_t address,
                  uint32_t size,
                  uint32_t slot)
{
    struct nursery *n = &p->lane->nursery;
    if (UNLIKELY(n->stamp == NURSERY_STAMP_MAX && !nursery_send_all(p)) || !make_place(p, block)) {
        return false;
    }
    nursery_put(p, block, address, size, slot);
    nursery_fence();
    n->freed_count = 0;
    nursery_fence(); // a reader after a kill must not see them at the new high-water mark
    n->high_water_limit = nursery_stamp_limit(n->stamp);
    n->stamp += NURSERY_STAMP;
    nursery_lift_ceiling(n);
    return true;
}

// Keep the size of a block that was just sent, for its free.
static void remember_sent(const struct nursery *n,
                          struct nursery_block *block,
                          uint64_t address,
                          uint64_t size_bytes)
{
    if (n->is_ordered != 0) {
        block->place = 0; // its former block has been sent
    } else if (size_bytes <= UINT32_MAX) {
        block->kind = size_bytes;
        block->place = nursery_place(address, NURSERY_SENT);
    }
}

bool nursery_allocate_slowly(struct lane_producer *p,
                             uint64_t address,
                             uint64_t size_bytes,
                             uint32_t slot)
{
    struct nursery *n = &p->lane->nursery;
    if (UNLIKELY(n->is_holding == 0)) {
        return send_allocation(p, address, size_bytes, slot);
    }
    struct nursery_block *block = nursery_block_of(p->lane, address);
    const bool fits = !nursery_is_high_water(n, size_bytes);
    if (nursery_may_hold(n, size_bytes) && (fits || n->is_ordered == 0)) {
        if (!fits) {
            return climb(p, block, address, (uint32_t)size_bytes, slot);
        }
        if (UNLIKELY(!make_place(p, block))) {
            return false;
        }
        nursery_put(p, block, address, (uint32_t)size_bytes, slot);
        return true;
    }
    if (UNLIKELY(!prepare_to_send(p, size_bytes) || !make_place(p, block) ||
                 !send_allocation(p, address, size_bytes, slot))) {
        return false;
    }
    rise(n, size_bytes);
    remember_sent(n, block, address, size_bytes);
    return true;
}

static bool send_sampled(
    struct lane_producer *p, uint64_t address, uint64_t size_bytes, uint32_t slot, uint32_t level)
{
    uint64_t *word = lane_producer_reserve_event(p, 3);
    if (UNLIKELY(word == NULL)) {
        return false;
    }
    word[0] = wire_word(WIRE_ALLOC_SAMPLED, address);
    word[1] = wire_slot_size(slot, size_bytes);
    word[2] = level;
    lane_producer_advance(p, 3);
    lane_producer_publish(p);
    p->lane->nursery.last_allocated = address;
    return true;
}

// In the thread's sum it is one block, because the blocks that it represents are counted as they
// are omitted.
bool nursery_allocate_sampled(
    struct lane_producer *p, uint64_t address, uint64_t size_bytes, uint32_t slot, uint32_t level)
{
    struct nursery *n = &p->lane->nursery;
    if (UNLIKELY(size_bytes >> WIRE_SAMPLED_SIZE_BITS != 0)) {
        return nursery_allocate_slowly(p, address, size_bytes, slot);
    }
    if (n->is_holding == 0) {
        return send_sampled(p, address, size_bytes, slot, level);
    }
    struct nursery_block *block = nursery_block_of(p->lane, address);
    if (!prepare_to_send(p, size_bytes) || !make_place(p, block) ||
        !send_sampled(p, address, size_bytes, slot, level)) {
        return false;
    }
    rise(n, size_bytes);
    remember_sent(n, block, address, size_bytes);
    return true;
}

bool nursery_free_elsewhere(struct lane_producer *p, uint64_t address, bool is_temporary)
{
    struct nursery_block *block = nursery_block_of(p->lane, address);
    if (block->place == address) {
        return nursery_coalesce(p, block, is_temporary);
    }
    return send_free(p, block, address, is_temporary);
}

// Send one record for the free of `old_address` and the allocation.
static bool pass_reallocation(struct lane_producer *p,
                              uint64_t old_address,
                              uint64_t address,
                              uint64_t size_bytes,
                              uint32_t slot)
{
    const bool is_temporary = p->lane->nursery.last_allocated == old_address;
    const bool is_large = size_bytes > WIRE_SIZE_MAX;
    const size_t words = is_large ? 4 : 3;
    uint64_t *word = lane_producer_reserve(p, words);
    if (UNLIKELY(word == NULL)) {
        return false;
    }
    static const enum wire_tag tags[2][2] = {
        {WIRE_REALLOC, WIRE_REALLOC_TEMPORARY},
        {WIRE_REALLOC_LARGE, WIRE_REALLOC_LARGE_TEMPORARY},
    };
    word[0] = wire_word(tags[is_large][is_temporary], address);
    word[1] = wire_slot_size(slot, is_large ? 0 : size_bytes);
    word[2] = old_address;
    if (is_large) {
        word[3] = size_bytes;
    }
    lane_producer_advance(p, words);
    lane_producer_publish(p);
    p->lane->nursery.last_allocated = address;
    return true;
}

// Return the size of the block if it is held; else 0: then the recorder knows it.
static uint64_t held_size(const struct lane_producer *p, uint64_t address)
{
    const struct nursery_block *block = nursery_block_of(p->lane, address);
    return p->lane->nursery.is_holding != 0 && block->place == address ? nursery_size(block->kind)
                                                                       : 0;
}

// Tell the recorder that the next allocation is a realloc that grows a block of old_bytes.
static bool pass_growth(struct lane_producer *p, uint64_t old_bytes, uint64_t bytes, uint32_t slot)
{
    if (LIKELY(bytes < WIRE_GREW_MIN) || bytes <= old_bytes || bytes > WIRE_SIZE_MAX) {
        return true;
    }
    uint64_t *word = lane_producer_reserve(p, 2);
    if (UNLIKELY(word == NULL)) {
        return false;
    }
    word[0] = wire_word(WIRE_GREW, old_bytes);
    word[1] = wire_slot_size(slot, bytes);
    lane_producer_advance(p, 2);
    lane_producer_publish(p);
    return true;
}

// If the thread is alone now, it may not be when the allocator has moved the block. Then any stamp
// of the time when it was alone precedes all events of the others, and costs less than a new one.
uint64_t nursery_move_stamp(const struct lane_producer *p)
{
    if (book_is_kept(p)) {
        return 0;
    }
    return p->is_ordered ? stamp_now(p->session) : p->alone_stamp;
}

struct freed_note nursery_begin_move(struct lane_producer *p, uint64_t address, uint64_t stamp)
{
    if (book_is_kept(p)) {
        return (struct freed_note){.stamp = 1, .taken = book_take(p->words, address)};
    }
    return (struct freed_note){
        .stamp = stamp,
        .latest =
            p->is_ordered && p->freed != NULL ? freed_table_note(p->freed, address, stamp) : 0,
    };
}

static bool free_at(struct lane_producer *p, uint64_t address, struct freed_note freed)
{
    const uint64_t given_stamp = p->given_stamp;
    p->given_stamp = freed.stamp != 0 ? freed.stamp : given_stamp;
    p->given_latest = freed.latest;
    const bool is_sent = nursery_free(p, address);
    p->given_stamp = given_stamp;
    return is_sent;
}

// The old block's word was taken before the allocator was called, unless it is the program's own
// allocator (include/cairn.h).
static bool reallocate_in_book(struct lane_producer *p,
                               uint64_t old_address,
                               uint64_t address,
                               uint64_t size_bytes,
                               uint32_t slot,
                               struct freed_note freed)
{
    const struct word_block old = freed.stamp != 0 ? freed.taken : book_take(p->words, old_address);
    return book_count_freed(p, &old) &&
           (old.row == 0 || pass_growth(p, old.size_bytes, size_bytes, slot)) &&
           nursery_allocate(p, address, size_bytes, slot);
}

bool nursery_reallocate(struct lane_producer *p,
                        uint64_t old_address,
                        uint64_t address,
                        uint64_t size_bytes,
                        uint32_t slot,
                        struct freed_note freed)
{
    struct nursery *n = &p->lane->nursery;
    if (book_is_kept(p)) {
        return reallocate_in_book(p, old_address, address, size_bytes, slot, freed);
    }
    if (p->is_ordered) { // two moments
        const uint64_t old_bytes = held_size(p, old_address);
        return free_at(p, old_address, freed) && pass_growth(p, old_bytes, size_bytes, slot) &&
               nursery_allocate(p, address, size_bytes, slot);
    }
    if (n->is_holding == 0) {
        return pass_reallocation(p, old_address, address, size_bytes, slot);
    }
    struct nursery_block *old_block = nursery_block_of(p->lane, old_address);
    if (old_block->place == old_address || nursery_may_hold(n, size_bytes)) {
        const uint64_t old_bytes = held_size(p, old_address);
        return nursery_free(p, old_address) && pass_growth(p, old_bytes, size_bytes, slot) &&
               nursery_allocate(p, address, size_bytes, slot);
    }
    forget_sent(n, old_block, old_address);
    struct nursery_block *block = nursery_block_of(p->lane, address);
    if (!prepare_to_send(p, size_bytes) || !make_place(p, block) ||
        !pass_reallocation(p, old_address, address, size_bytes, slot)) {
        return false;
    }
    rise(n, size_bytes);
    remember_sent(n, block, address, size_bytes);
    return true;
}
