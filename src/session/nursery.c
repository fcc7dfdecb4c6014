// SPDX-License-Identifier: MIT
// nursery: see nursery.h. Here: what is sent, in which order; the life of the tables:
// nursery_turn.c.
#include "session/nursery.h"

#include "session/nursery_turn.h"

// Of so many pairs that meet another's fold, one takes it over; the others are sent at once. So a
// fold that is much used is not displaced by each that is seen once, and those cost little.
#define PASSED_BY_MAX 4u

static bool is_at(const struct nursery_block *block, uint64_t address)
{
    return (block->place & NURSERY_ADDRESS_MASK) == address;
}

// Where the block at `address` is, or what lies where it belongs.
ALWAYS_INLINE struct nursery_block *find_block(struct lane_header *lane, uint64_t address)
{
    struct nursery_block *block = nursery_block_of(lane, address);
    if (is_at(block, address)) {
        return block;
    }
    struct nursery_block *line = nursery_line_of(lane, address);
    for (uint32_t i = 0; i < NURSERY_LINE; i++) {
        if (is_at(line + i, address)) {
            return line + i;
        }
    }
    return block;
}

// Where a new block at `address` comes to. What is there is the same, long gone, or nothing; or
// something that has to be displaced.
ALWAYS_INLINE struct nursery_block *choose_place(struct lane_header *lane, uint64_t address)
{
    struct nursery_block *block = find_block(lane, address);
    if (block->place == 0 || is_at(block, address)) {
        return block;
    }
    struct nursery_block *line = nursery_line_of(lane, address);
    for (uint32_t i = 0; i < NURSERY_LINE; i++) {
        if (line[i].place == 0) {
            return line + i;
        }
    }
    return block;
}

// Sends a HELD block; it is SENT then.
static bool send_block(struct lane_producer *p, struct nursery_block *block)
{
    struct nursery *n = &p->lane->nursery;
    const uint64_t address = block->place;
    const uint32_t slot = nursery_slot(block->kind);
    uint64_t *word = lane_producer_reserve(p, 2);
    if (word == NULL) {
        return false;
    }
    n->mark = p->pos + 2 * sizeof(*word);
    nursery_fence();
    block->place = nursery_place(address, NURSERY_SENDING);
    nursery_fence();
    word[0] = wire_word(WIRE_ALLOC, address);
    word[1] = wire_slot_size(slot, (uint32_t)block->kind);
    lane_producer_advance(p, 2);
    lane_producer_publish(p);
    nursery_fence();
    block->place = nursery_place(address, NURSERY_SENT);
    nursery_fence();
    atomic_store_explicit(&n->held_bytes, nursery_relaxed(&n->held_bytes) - (uint32_t)block->kind,
                          memory_order_relaxed);
    n->record_count++;
    return true;
}

static bool send_fold(struct lane_producer *p, struct nursery_fold *fold)
{
    struct nursery *n = &p->lane->nursery;
    const uint64_t kind = nursery_fold_kind(fold);
    const bool is_temporary = nursery_is_temporary(kind);
    const uint64_t bytes = wire_pairs_bytes(fold->sums);
    const bool is_one = wire_pairs_count(fold->sums) == 1;
    const size_t words = is_one ? 1 : 2;
    uint64_t *word = lane_producer_reserve(p, words);
    if (word == NULL) {
        return false;
    }
    n->mark = p->pos + words * sizeof(*word);
    nursery_fence();
    fold->key |= NURSERY_FOLD_SENDING;
    nursery_fence();
    if (is_one) {
        word[0] = wire_pair(is_temporary ? WIRE_PAIR_TEMPORARY : WIRE_PAIR, nursery_slot(kind),
                            (uint32_t)bytes);
    } else {
        word[0] =
            wire_pair(is_temporary ? WIRE_PAIRS_TEMPORARY : WIRE_PAIRS, nursery_slot(kind), 0);
        word[1] = fold->sums;
    }
    lane_producer_advance(p, words);
    lane_producer_publish(p);
    nursery_fence();
    fold->key = 0;
    n->record_count++;
    return true;
}

// Gives a fold to another key; what it counted is sent.
static bool use_fold(struct lane_producer *p, struct nursery_fold *fold, uint64_t key)
{
    if (fold->key != 0 && !send_fold(p, fold)) {
        return false;
    }
    const uint32_t index = (uint32_t)(fold - lane_nursery_tables(p->lane)->folds);
    p->lane->nursery.folds_used[index / 64] |= (uint64_t)1 << index % 64;
    fold->sums = 0;
    nursery_fence();
    fold->key = key;
    nursery_fence();
    return true;
}

// Sends a HELD block together with its free. To whoever reads after a kill it is a block that was
// being sent, and is gone when that was done.
static bool send_pair(struct lane_producer *p, struct nursery_block *block, bool is_temporary)
{
    struct nursery *n = &p->lane->nursery;
    const uint32_t slot = nursery_slot(block->kind);
    const uint32_t size = (uint32_t)block->kind;
    uint64_t *word = lane_producer_reserve(p, 1);
    if (UNLIKELY(word == NULL)) {
        return false;
    }
    n->mark = p->pos + sizeof(*word);
    nursery_fence();
    block->place |= nursery_place(0, NURSERY_SENDING);
    nursery_fence();
    word[0] = wire_pair(is_temporary ? WIRE_PAIR_TEMPORARY : WIRE_PAIR, slot, size);
    lane_producer_advance(p, 1);
    lane_producer_publish(p);
    nursery_fence();
    block->place = 0;
    nursery_fence();
    nursery_leave(n, size);
    n->record_count++;
    return true;
}

bool nursery_fold_elsewhere(struct lane_producer *p, struct nursery_block *block, uint64_t kind)
{
    struct nursery *n = &p->lane->nursery;
    struct nursery_tables *tables = lane_nursery_tables(p->lane);
    const uint64_t key = nursery_fold_key(kind);
    struct nursery_fold *fold = nursery_find_fold(p->lane, key);
    const bool is_taken = fold->key != 0 && fold->key != key;
    n->passed_count += is_taken;
    if (is_taken && ++tables->passed_by[fold - tables->folds] % PASSED_BY_MAX != 0) {
        return send_pair(p, block, nursery_is_temporary(kind));
    }
    const bool is_full = wire_pairs_count(fold->sums) >= NURSERY_COUNT_MAX;
    if ((fold->key != key || is_full) && !use_fold(p, fold, key)) {
        return false;
    }
    nursery_count(n, fold, block, kind);
    return true;
}

// Sends the HELD blocks of one line, but for the thread's latest.
static bool send_line(struct lane_producer *p, struct nursery_block *line)
{
    for (uint32_t i = 0; i < NURSERY_LINE; i++) {
        if (nursery_is_held(line + i) && line[i].place != p->lane->nursery.last_allocated &&
            !send_block(p, line + i)) {
            return false;
        }
    }
    return true;
}

// Sends all blocks, the latest last: the recorder takes the last one of a lane for the one that may
// prove temporary.
static bool send_blocks(struct lane_producer *p)
{
    struct nursery *n = &p->lane->nursery;
    struct nursery_tables *tables = lane_nursery_tables(p->lane);
    for (uint32_t i = 0; i <= n->mask / NURSERY_LINE / 64; i++) {
        for (uint64_t left = n->touched[i]; left != 0; left &= left - 1) {
            const uint32_t line = i * 64 + (uint32_t)__builtin_ctzll(left);
            if (!send_line(p, tables->blocks + (size_t)line * NURSERY_LINE)) {
                return false;
            }
        }
        n->touched[i] = 0;
    }
    struct nursery_block *latest = find_block(p->lane, n->last_allocated);
    const bool is_held = n->last_allocated != 0 && latest->place == n->last_allocated;
    return !is_held || send_block(p, latest);
}

static bool send_folds(struct lane_producer *p)
{
    struct nursery_tables *tables = lane_nursery_tables(p->lane);
    uint64_t *used = p->lane->nursery.folds_used;
    for (size_t i = 0; i <= p->lane->nursery.fold_mask / 64; i++) {
        for (; used[i] != 0; used[i] &= used[i] - 1) {
            struct nursery_fold *fold = tables->folds + i * 64 + __builtin_ctzll(used[i]);
            if (fold->key != 0 && !send_fold(p, fold)) {
                return false;
            }
        }
    }
    return true;
}

// Nothing is held: no stack's slot is in use.
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
    if (!send_folds(p) || !send_blocks(p)) {
        return false;
    }
    forget_uses(&p->lane->nursery);
    return true;
}

// Sends what is held where another block belongs.
static bool make_place(struct lane_producer *p, struct nursery_block *block)
{
    p->lane->nursery.evicted_count += block->place != 0;
    return !nursery_is_held(block) || send_block(p, block);
}

static bool
send_allocation(struct lane_producer *p, uint64_t address, uint64_t size_bytes, uint32_t slot)
{
    if (LIKELY(size_bytes <= WIRE_SIZE_MAX)) {
        return nursery_pass_block(p, address, size_bytes, slot);
    }
    uint64_t *word = lane_producer_reserve(p, 3);
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

// A block that is sent at once may be a new maximum: what is held goes first, so that the recorder
// sees the maximum as it was.
static bool prepare_to_rise(struct lane_producer *p, uint64_t size_bytes)
{
    const struct nursery *n = &p->lane->nursery;
    return (int64_t)size_bytes <= n->room_bytes || nursery_relaxed(&n->held_bytes) == 0 ||
           send_blocks(p);
}

// A block of `size_bytes` was sent; the ceiling is at least where the sum is now.
static void rise(struct nursery *n, uint64_t size_bytes)
{
    const int64_t left = n->room_bytes - (int64_t)size_bytes;
    const int64_t lift = left < 0 ? -left : 0;
    n->ceiling_bytes += lift;
    n->room_bytes = left + lift;
    n->low_room_bytes += lift;
    nursery_note_room(n);
    n->direct_count++;
    n->record_count++;
}

// Keeps the size of a block that was just sent, for its free.
static void remember_sent(struct nursery_block *block, uint64_t address, uint64_t size_bytes)
{
    if (size_bytes <= UINT32_MAX) {
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
    struct nursery_block *block = choose_place(p->lane, address);
    if (nursery_may_hold(n, size_bytes)) {
        if (UNLIKELY(!make_place(p, block))) {
            return false;
        }
        nursery_put(p->lane, block, address, (uint32_t)size_bytes, slot);
        return true;
    }
    if (UNLIKELY(!prepare_to_rise(p, size_bytes) || !make_place(p, block) ||
                 !send_allocation(p, address, size_bytes, slot))) {
        return false;
    }
    rise(n, size_bytes);
    remember_sent(block, address, size_bytes);
    return true;
}

static bool send_sampled(
    struct lane_producer *p, uint64_t address, uint64_t size_bytes, uint32_t slot, uint32_t shift)
{
    uint64_t *word = lane_producer_reserve(p, 3);
    if (UNLIKELY(word == NULL)) {
        return false;
    }
    word[0] = wire_word(WIRE_ALLOC_SAMPLED, address);
    word[1] = wire_slot_size(slot, size_bytes);
    word[2] = shift;
    lane_producer_advance(p, 3);
    lane_producer_publish(p);
    p->lane->nursery.last_allocated = address;
    return true;
}

// To the thread's sum it is what the recorder takes it for: all the blocks that it stands for.
bool nursery_allocate_sampled(
    struct lane_producer *p, uint64_t address, uint64_t size_bytes, uint32_t slot, uint32_t shift)
{
    struct nursery *n = &p->lane->nursery;
    if (n->is_holding == 0) {
        return send_sampled(p, address, size_bytes, slot, shift);
    }
    const uint64_t bytes = size_bytes << shift;
    struct nursery_block *block = choose_place(p->lane, address);
    if (!prepare_to_rise(p, bytes) || !make_place(p, block) ||
        !send_sampled(p, address, size_bytes, slot, shift)) {
        return false;
    }
    rise(n, bytes);
    remember_sent(block, address, bytes);
    return true;
}

// If the block at `address` was sent and its size is known, it is forgotten, and leaves the sum.
static void forget_sent(struct nursery *n, struct nursery_block *block, uint64_t address)
{
    if (block->place == nursery_place(address, NURSERY_SENT)) {
        block->place = 0;
        n->room_bytes += (uint32_t)block->kind;
    }
}

bool nursery_free_elsewhere(struct lane_producer *p, uint64_t address, bool is_temporary)
{
    struct nursery_block *block = find_block(p->lane, address);
    if (block->place == address) {
        return nursery_fold(p, block, is_temporary);
    }
    if (UNLIKELY(!nursery_pass_free(p, address, is_temporary))) {
        return false;
    }
    forget_sent(&p->lane->nursery, block, address);
    return true;
}

// One record for the free of `old_address` and the allocation.
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

bool nursery_reallocate(struct lane_producer *p,
                        uint64_t old_address,
                        uint64_t address,
                        uint64_t size_bytes,
                        uint32_t slot)
{
    struct nursery *n = &p->lane->nursery;
    if (n->is_holding == 0) {
        return pass_reallocation(p, old_address, address, size_bytes, slot);
    }
    struct nursery_block *old_block = find_block(p->lane, old_address);
    if (old_block->place == old_address || nursery_may_hold(n, size_bytes)) {
        return nursery_free(p, old_address) && nursery_allocate(p, address, size_bytes, slot);
    }
    forget_sent(n, old_block, old_address);
    struct nursery_block *block = choose_place(p->lane, address);
    if (!prepare_to_rise(p, size_bytes) || !make_place(p, block) ||
        !pass_reallocation(p, old_address, address, size_bytes, slot)) {
        return false;
    }
    rise(n, size_bytes);
    remember_sent(block, address, size_bytes);
    return true;
}
