// SPDX-License-Identifier: MIT
// nursery: see nursery.h. Here: what is sent, in which order; the life of the tables:
// nursery_turn.c.
#include "session/nursery.h"

#include "session/nursery_turn.h"

// Blocks from this size on are sent at once: they are few, and matter.
#define HELD_SIZE_MAX (1u << 20)

// The sum of what was sent is about to change: notes how high the sum was in the stretch that ends.
static void end_stretch(struct nursery *n)
{
    const uint64_t highest = nursery_relaxed(&n->highest_bytes);
    const int64_t sum = n->sent_bytes + (int64_t)highest;
    n->peak_bytes = sum > n->peak_bytes ? sum : n->peak_bytes;
    if (highest > nursery_relaxed(&n->held_peak_bytes)) {
        atomic_store_explicit(&n->held_peak_bytes, highest, memory_order_relaxed);
    }
}

// Blocks of `held_change` bytes came to be held, and of `sent_change` to be sent and alive.
static void move_sum(struct nursery *n, int64_t held_change, int64_t sent_change)
{
    end_stretch(n);
    const uint64_t held = nursery_relaxed(&n->held_bytes) + (uint64_t)held_change;
    atomic_store_explicit(&n->held_bytes, held, memory_order_relaxed);
    atomic_store_explicit(&n->highest_bytes, held, memory_order_relaxed);
    n->sent_bytes += sent_change;
    nursery_set_limit(n);
}

void nursery_set_limit(struct nursery *n)
{
    const int64_t room = n->is_holding != 0 ? n->ceiling_bytes - n->sent_bytes : 0;
    const int64_t limit = room < INT32_MAX ? room : INT32_MAX; // so that a size has 32 bits
    n->limit_bytes = limit > 0 ? (uint64_t)limit : 0;
}

// Sends the block in `way` of `set`, which is HELD; it is SENT then.
static bool send_block(struct lane_producer *p, struct nursery_set *set, uint32_t way)
{
    struct nursery *n = &p->lane->nursery;
    uint64_t *word = lane_producer_reserve(p, 2);
    if (word == NULL) {
        return false;
    }
    n->mark = p->pos + 2 * sizeof(*word);
    nursery_fence();
    nursery_set_state(set, way, NURSERY_SENDING);
    nursery_fence();
    word[0] = wire_word(WIRE_ALLOC, set->addresses[way]);
    word[1] = wire_slot_size(set->slots[way] & NURSERY_SLOT_MASK, set->sizes[way]);
    lane_producer_advance(p, 2);
    lane_producer_publish(p);
    nursery_fence();
    nursery_set_state(set, way, NURSERY_SENT);
    const int64_t size = set->sizes[way];
    move_sum(n, -size, size);
    n->late_count++;
    return true;
}

static bool send_fold(struct lane_producer *p, struct nursery_fold *fold)
{
    struct nursery *n = &p->lane->nursery;
    const uint32_t slot = (uint32_t)(fold->key >> 32) & NURSERY_SLOT_MASK;
    const uint32_t size = (uint32_t)fold->key;
    const bool is_one = (uint32_t)fold->counts == 1;
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
        word[0] = wire_pair(fold->counts >> 32 != 0 ? WIRE_PAIR_TEMPORARY : WIRE_PAIR, slot, size);
    } else {
        word[0] = wire_pair(WIRE_PAIRS, slot, size);
        word[1] = fold->counts;
    }
    lane_producer_advance(p, words);
    lane_producer_publish(p);
    nursery_fence();
    fold->key = 0;
    return true;
}

bool nursery_use_fold(struct lane_producer *p, struct nursery_fold *fold, uint64_t key)
{
    if (fold->key != 0 && !send_fold(p, fold)) {
        return false;
    }
    const uint32_t index = (uint32_t)(fold - lane_nursery_tables(p->lane)->folds);
    p->lane->nursery.folds_used[index / 64] |= (uint64_t)1 << index % 64;
    fold->counts = 0;
    nursery_fence();
    fold->key = key;
    nursery_fence();
    return true;
}

// Sends the HELD blocks of one set, but for the thread's latest.
static bool send_set(struct lane_producer *p, struct nursery_set *set)
{
    for (uint32_t way = 0; way < NURSERY_WAYS; way++) {
        if (nursery_state(set, way) == NURSERY_HELD &&
            set->addresses[way] != p->lane->nursery.last_allocated && !send_block(p, set, way)) {
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
    for (uint32_t i = 0; i < (n->mask + 1) / 64; i++) {
        for (uint64_t left = n->touched[i]; left != 0; left &= left - 1) {
            const uint32_t index = i * 64 + (uint32_t)__builtin_ctzll(left);
            if (!send_set(p, tables->sets + index)) {
                return false;
            }
        }
        n->touched[i] = 0;
    }
    struct nursery_set *set = nursery_set_of(p->lane, n->last_allocated);
    const uint32_t ways = n->last_allocated != 0 ? nursery_ways_at(set, n->last_allocated) : 0;
    const uint32_t way = ways != 0 ? (uint32_t)__builtin_ctz(ways) : 0;
    return ways == 0 || nursery_state(set, way) != NURSERY_HELD || send_block(p, set, way);
}

bool nursery_send_all(struct lane_producer *p)
{
    if (p->lane->nursery.hold_count == 0) {
        return true;
    }
    struct nursery_tables *tables = lane_nursery_tables(p->lane);
    uint64_t *used = p->lane->nursery.folds_used;
    for (size_t i = 0; i < NURSERY_FOLDS / 64; i++) {
        for (; used[i] != 0; used[i] &= used[i] - 1) {
            struct nursery_fold *fold = tables->folds + i * 64 + __builtin_ctzll(used[i]);
            if (fold->key != 0 && !send_fold(p, fold)) {
                return false;
            }
        }
    }
    return send_blocks(p);
}

// Where a block at `address` belongs: where its predecessor was, or whoever matters least.
static uint32_t choose_way(struct nursery *n, const struct nursery_set *set, uint64_t address)
{
    const uint32_t same = nursery_ways_at(set, address);
    if (same != 0) {
        return (uint32_t)__builtin_ctz(same);
    }
    uint32_t best = (uint32_t)n->hold_count % NURSERY_WAYS;
    for (uint32_t way = 0; way < NURSERY_WAYS; way++) {
        best = nursery_state(set, way) < nursery_state(set, best) ? way : best;
    }
    n->evicted_count += nursery_state(set, best) != NURSERY_VACANT;
    return best;
}

static bool
send_allocation(struct lane_producer *p, uint64_t address, uint64_t size_bytes, uint32_t slot)
{
    const bool is_large = size_bytes > WIRE_SIZE_MAX;
    const size_t words = is_large ? 3 : 2;
    uint64_t *word = lane_producer_reserve(p, words);
    if (UNLIKELY(word == NULL)) {
        return false;
    }
    word[0] = wire_word(is_large ? WIRE_ALLOC_LARGE : WIRE_ALLOC, address);
    word[1] = wire_slot_size(slot, is_large ? 0 : size_bytes);
    if (is_large) {
        word[2] = size_bytes;
    }
    lane_producer_advance(p, words);
    lane_producer_publish(p);
    return true;
}

static bool may_hold(const struct nursery *n, uint64_t size_bytes)
{
    return size_bytes <= HELD_SIZE_MAX &&
           nursery_relaxed(&n->held_bytes) + size_bytes <= n->limit_bytes;
}

// A block that is sent at once has passed the ceiling, or is about to: what is held goes first, so
// that the recorder sees the maximum as it was.
static bool prepare_to_rise(struct lane_producer *p, uint64_t size_bytes)
{
    const struct nursery *n = &p->lane->nursery;
    return nursery_relaxed(&n->held_bytes) + size_bytes <= n->limit_bytes || send_blocks(p);
}

// A block of `size_bytes` was sent.
static void rise(struct nursery *n, uint64_t size_bytes)
{
    move_sum(n, 0, (int64_t)size_bytes);
    n->direct_count++;
    const int64_t sum = n->sent_bytes + (int64_t)nursery_relaxed(&n->held_bytes);
    if (sum > n->ceiling_bytes) {
        n->ceiling_bytes = sum;
        nursery_set_limit(n);
    }
}

// Keeps the size of a block that was just sent, for its free.
static void remember_sent(struct lane_producer *p,
                          struct nursery_set *set,
                          uint32_t way,
                          uint64_t address,
                          uint64_t size_bytes,
                          uint32_t slot)
{
    if (size_bytes <= UINT32_MAX) {
        set->slots[way] = slot | (uint32_t)NURSERY_SENT << NURSERY_STATE_SHIFT;
        set->addresses[way] = address;
        set->sizes[way] = (uint32_t)size_bytes;
    }
    p->lane->nursery.last_allocated = address;
}

bool nursery_allocate_slowly(struct lane_producer *p,
                             uint64_t address,
                             uint64_t size_bytes,
                             uint32_t slot)
{
    struct nursery *n = &p->lane->nursery;
    if (n->is_holding == 0) {
        n->last_allocated = address;
        return send_allocation(p, address, size_bytes, slot);
    }
    struct nursery_set *set = nursery_set_of(p->lane, address);
    const bool is_held = may_hold(n, size_bytes);
    if (!is_held && !prepare_to_rise(p, size_bytes)) {
        return false;
    }
    const uint32_t way = choose_way(n, set, address);
    if (nursery_state(set, way) == NURSERY_HELD && !send_block(p, set, way)) {
        return false;
    }
    if (is_held) {
        nursery_put(p->lane, set, way, address, (uint32_t)size_bytes, slot);
        return true;
    }
    if (!send_allocation(p, address, size_bytes, slot)) {
        return false;
    }
    rise(n, size_bytes);
    remember_sent(p, set, way, address, size_bytes, slot);
    return true;
}

// The bytes of the block at `address` if it was sent and its size is still known; it is forgotten.
static int64_t forget_sent(struct lane_producer *p, uint64_t address)
{
    struct nursery_set *set = nursery_set_of(p->lane, address);
    const uint32_t ways = nursery_ways_at(set, address);
    const uint32_t way = ways != 0 ? (uint32_t)__builtin_ctz(ways) : 0;
    if (ways == 0 || nursery_state(set, way) != NURSERY_SENT) {
        return 0;
    }
    nursery_set_state(set, way, NURSERY_VACANT);
    return set->sizes[way];
}

bool nursery_send_free(struct lane_producer *p, uint64_t address, bool is_temporary)
{
    uint64_t *word = lane_producer_reserve(p, 1);
    if (UNLIKELY(word == NULL)) {
        return false;
    }
    word[0] = wire_word(is_temporary ? WIRE_FREE_TEMPORARY : WIRE_FREE, address);
    lane_producer_advance(p, 1);
    lane_producer_publish(p);
    const int64_t known_bytes = forget_sent(p, address);
    if (known_bytes != 0) {
        move_sum(&p->lane->nursery, 0, -known_bytes);
    }
    return true;
}

// One record for the free of `old_address` and the allocation.
static bool send_reallocation(struct lane_producer *p,
                              uint64_t old_address,
                              bool is_temporary,
                              uint64_t address,
                              uint64_t size_bytes,
                              uint32_t slot)
{
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
    return true;
}

bool nursery_reallocate(struct lane_producer *p,
                        uint64_t old_address,
                        uint64_t address,
                        uint64_t size_bytes,
                        uint32_t slot)
{
    struct nursery *n = &p->lane->nursery;
    struct nursery_set *old_set = nursery_set_of(p->lane, old_address);
    const uint32_t ways = nursery_ways_at(old_set, old_address);
    const bool was_held =
        ways != 0 && nursery_state(old_set, (uint32_t)__builtin_ctz(ways)) == NURSERY_HELD;
    if (was_held || may_hold(n, size_bytes)) {
        return nursery_free(p, old_address) && nursery_allocate(p, address, size_bytes, slot);
    }
    const bool is_temporary = n->last_allocated == old_address;
    n->last_allocated = 0;
    move_sum(n, 0, -forget_sent(p, old_address));
    struct nursery_set *set = nursery_set_of(p->lane, address);
    const uint32_t way = choose_way(n, set, address);
    if (!prepare_to_rise(p, size_bytes) ||
        (nursery_state(set, way) == NURSERY_HELD && !send_block(p, set, way)) ||
        !send_reallocation(p, old_address, is_temporary, address, size_bytes, slot)) {
        return false;
    }
    rise(n, size_bytes);
    n->last_allocated = address;
    if (n->is_holding != 0) {
        remember_sent(p, set, way, address, size_bytes, slot);
    }
    return true;
}
