// SPDX-License-Identifier: MIT
#include "target/producer/nursery/nursery_send.h"

_Static_assert(NURSERY_FREED_MAX <= WIRE_HIGH_WATER_MAX,
               "one record has room for all that are freed");

// Return the stamp from which a block that was held counts; 0: from now on. If the thread is about
// to report an earlier free, that free may end this block, and another thread may have a block at
// its address by now: then the block must precede the free's stamp. It existed by then in any case.
static uint64_t stamp_of_late(const struct lane_producer *p)
{
    // Relaxed: our own.
    return p->given_stamp != 0
               ? p->given_stamp
               : atomic_load_explicit(&p->lane->pending_stamps[LANE_PENDING_REALLOC],
                                      memory_order_relaxed);
}

// Reserve the words of a block that was held, after its stamp. It needs none if the thread sent a
// stamp in this tick, and no thread freed the block's address between that and the allocation.
static uint64_t *reserve_late(struct lane_producer *p, const struct nursery_block *block)
{
    const uint64_t stamp = stamp_of_late(p);
    if (stamp == 0 && p->is_tick_stamped && *nursery_since(p->lane, block) <= p->latest_stamp) {
        return lane_producer_reserve(p, 3);
    }
    const uint64_t given_stamp = p->given_stamp;
    p->given_stamp = stamp;
    uint64_t *word = lane_producer_reserve_event(p, 3);
    p->given_stamp = given_stamp;
    p->early_bytes = 0; // a block that the thread allocates now may be older than this stamp
    return word;
}

// Send a block while several threads record.
static bool send_late(struct lane_producer *p, struct nursery_block *block)
{
    struct nursery *n = &p->lane->nursery;
    const uint64_t address = block->place;
    const uint32_t size = nursery_size(block->kind);
    uint64_t *word = reserve_late(p, block);
    if (word == NULL) {
        return false;
    }
    n->mark = p->pos + 3 * sizeof(*word);
    nursery_fence();
    block->place = nursery_place(address, NURSERY_SENDING);
    nursery_fence();
    word[0] = wire_word(WIRE_ALLOC_LATE, address);
    word[1] = wire_slot_size(nursery_slot(block->kind), size);
    word[2] = *nursery_since(p->lane, block);
    lane_producer_advance(p, 3);
    lane_producer_publish(p);
    nursery_fence();
    block->place = 0;
    nursery_fence();
    nursery_leave(n, size);
    n->trade.records++;
    return true;
}

bool nursery_send_block(struct lane_producer *p, struct nursery_block *block)
{
    if (p->is_ordered) {
        return send_late(p, block);
    }
    struct nursery *n = &p->lane->nursery;
    const uint64_t address = block->place;
    const uint32_t slot = nursery_slot(block->kind);
    const uint32_t size = nursery_size(block->kind);
    uint64_t *word = lane_producer_reserve(p, 2);
    if (word == NULL) {
        return false;
    }
    n->mark = p->pos + 2 * sizeof(*word);
    nursery_fence();
    block->place = nursery_place(address, NURSERY_SENDING);
    nursery_fence();
    word[0] = wire_word(WIRE_ALLOC, address);
    word[1] = wire_slot_size(slot, size);
    lane_producer_advance(p, 2);
    lane_producer_publish(p);
    nursery_fence();
    block->kind = size;
    nursery_fence();
    block->place = nursery_place(address, NURSERY_SENT);
    nursery_fence();
    atomic_store_explicit(&n->held_bytes, nursery_relaxed(&n->held_bytes) - size,
                          memory_order_relaxed);
    n->trade.records++;
    return true;
}

bool nursery_send_counter(struct lane_producer *p, struct nursery_counter *counter)
{
    struct nursery *n = &p->lane->nursery;
    const uint64_t kind = nursery_counter_kind(counter);
    const bool is_temporary = nursery_is_temporary(kind);
    const uint64_t bytes = wire_pairs_bytes(counter->sums);
    const bool is_one = wire_pairs_count(counter->sums) == 1;
    const size_t words = is_one ? 1 : 2;
    uint64_t *word = lane_producer_reserve(p, words);
    if (word == NULL) {
        return false;
    }
    n->mark = p->pos + words * sizeof(*word);
    nursery_fence();
    counter->key |= NURSERY_COUNTER_SENDING;
    nursery_fence();
    if (is_one) {
        word[0] = wire_pair(is_temporary ? WIRE_PAIR_TEMPORARY : WIRE_PAIR, nursery_slot(kind),
                            (uint32_t)bytes);
    } else {
        word[0] =
            wire_pair(is_temporary ? WIRE_PAIRS_TEMPORARY : WIRE_PAIRS, nursery_slot(kind), 0);
        word[1] = counter->sums;
    }
    lane_producer_advance(p, words);
    lane_producer_publish(p);
    nursery_fence();
    counter->key = 0;
    n->trade.records++;
    return true;
}

// Return the block of the thread's latest allocation, if it is HELD.
static struct nursery_block *find_latest(struct lane_header *lane)
{
    const uint64_t address = lane->nursery.last_allocated;
    struct nursery_block *block = nursery_block_of(lane, address);
    return address != 0 && block->place == address ? block : NULL;
}

// Send the HELD blocks that are within the limit, the latest last: the recorder treats the last one
// of a lane as the one that may be temporary. (Another block at its address, which another thread
// has freed, may be held.)
static bool send_blocks(struct lane_producer *p, uint32_t limit)
{
    struct nursery_block *blocks = lane_nursery_tables(p->lane)->blocks;
    struct nursery_block *latest = find_latest(p->lane);
    for (uint32_t i = 0; i < NURSERY_BLOCKS / 64; i++) {
        uint64_t *touched = &p->lane->nursery.touched[i];
        for (uint64_t left = *touched; left != 0; left &= left - 1) {
            struct nursery_block *block = blocks + (size_t)i * 64 + __builtin_ctzll(left);
            const bool is_later = nursery_is_held(block) && !nursery_is_within(block->kind, limit);
            if (is_later || block == latest) {
                continue;
            }
            if (nursery_is_held(block) && !nursery_send_block(p, block)) {
                return false;
            }
            *touched &= ~(left & -left);
        }
    }
    const bool is_next = latest != NULL && nursery_is_within(latest->kind, limit);
    return !is_next || nursery_send_block(p, latest);
}

static bool send_high_water(struct lane_producer *p)
{
    struct nursery *n = &p->lane->nursery;
    const uint32_t count = n->freed_count;
    if (count == 0) {
        return true;
    }
    uint64_t *word = lane_producer_reserve(p, 1 + (size_t)count);
    if (word == NULL) {
        return false;
    }
    word[0] = wire_word(WIRE_HIGH_WATER, count);
    __builtin_memcpy(word + 1, lane_nursery_tables(p->lane)->freed, count * sizeof(*word));
    lane_producer_advance(p, 1 + (size_t)count);
    lane_producer_publish(p);
    nursery_fence();
    n->freed_count = 0;
    n->trade.records++;
    return true;
}

bool nursery_show_high_water(struct lane_producer *p)
{
    struct nursery *n = &p->lane->nursery;
    if (n->high_water_limit == NURSERY_NO_HIGH_WATER) {
        return true;
    }
    if (!send_blocks(p, n->high_water_limit) || !send_high_water(p)) {
        return false;
    }
    n->high_water_limit = NURSERY_NO_HIGH_WATER;
    return true;
}

bool nursery_send_blocks(struct lane_producer *p)
{
    return nursery_show_high_water(p) && send_blocks(p, UINT32_MAX);
}

static bool send_counters(struct lane_producer *p)
{
    struct nursery_tables *tables = lane_nursery_tables(p->lane);
    uint64_t *used = p->lane->nursery.counters_used;
    for (size_t i = 0; i < NURSERY_COUNTERS / 64; i++) {
        for (; used[i] != 0; used[i] &= used[i] - 1) {
            struct nursery_counter *counter = tables->counters + i * 64 + __builtin_ctzll(used[i]);
            if (counter->key != 0 && !nursery_send_counter(p, counter)) {
                return false;
            }
        }
    }
    return true;
}

// Forget the stack slots in use: nothing is held.
static void forget_uses(struct nursery *n)
{
    if (n->epoch++ == UINT8_MAX) {
        __builtin_memset(n->uses, 0, sizeof(n->uses));
        n->epoch = 1;
    }
}

bool nursery_send_all(struct lane_producer *p)
{
    if (p->lane->nursery.hold_count == 0) {
        return true;
    }
    if (book_is_kept(p)) {
        return book_send_all(p);
    }
    if (!send_counters(p) || !nursery_send_blocks(p)) {
        return false;
    }
    forget_uses(&p->lane->nursery);
    p->lane->nursery.stamp = NURSERY_STAMP;
    return true;
}
