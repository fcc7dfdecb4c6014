// SPDX-License-Identifier: MIT
// nursery: most blocks die young, on the thread that made them; what becomes of them is settled
// here and never sent one by one.
//
//   allocation --held--> set (by address) --freed in the same tick--> fold (by stack and size)
//        |                 | tick over, set full, or new maximum          | tick over, or place
//        taken
//        |--not held-----> v                                              v
//        `------------> ALLOC in the ring                           PAIR(S) in the ring
//
// A block is held only while the thread's sum (allocated less freed) is at most `ceiling_bytes`, so
// that no moment at which anything is held can be a new maximum of the live bytes: the recorder
// then sees each maximum, and who owned it, as if every event had been sent. An allocation that
// would pass the ceiling first sends what is held, is sent itself, and raises the ceiling: what has
// been sent up to then has been a maximum as far as this thread knows. Frees of blocks whose size
// is not known any more count nothing, so the sum errs on the side of sending. To make up for that,
// the recorder tells now and then how far below the maximum it was at a certain TICK. All this is
// exact while the session has one thread; with several, RISE gives the bound
// (docs/design/nursery.md).
//
// Nothing is held beyond its tick: the first event of a new one sends what is left, then the TICK.
// A thread that stands still is relieved by the recorder, and so is one that was killed
// (nursery_layout.h says why neither loses nor doubles anything).
//
// A lane whose blocks mostly outlive their tick stops holding for a while. A busy one gets more
// sets. Context: T, the lane's thread under the guard, not reentrant. Every call but
// nursery_begin's own must follow a nursery_begin of the same hook. False: recording is over for
// good.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "session/lane_producer.h"
#include "session/layout.h"

#define NURSERY_COUNT_MAX (1u << 20) // pairs in one fold: then it is sent, whatever the time

// After lane_producer_init, on a zeroed lane.
void nursery_init(struct lane_producer *p);

// The rest of nursery_begin.
bool nursery_turn(struct lane_producer *p, uint64_t now_ms) MUST_USE;

// The rest of the events.
bool nursery_allocate_slowly(struct lane_producer *p,
                             uint64_t address,
                             uint64_t size_bytes,
                             uint32_t slot) MUST_USE;
bool nursery_send_free(struct lane_producer *p, uint64_t address, bool is_temporary) MUST_USE;
bool nursery_use_fold(struct lane_producer *p, struct nursery_fold *fold, uint64_t key) MUST_USE;

// Sends all that is held: before a stack's slot gets another meaning, and at the end.
bool nursery_flush(struct lane_producer *p);

// As nursery_flush, after a hook was left half way.
bool nursery_recover(struct lane_producer *p);

ALWAYS_INLINE uint64_t nursery_relaxed(const _Atomic uint64_t *word)
{
    // Relaxed: our own, or compared with nothing else.
    return atomic_load_explicit(word, memory_order_relaxed);
}

// Keeps the compiler from moving stores across: whoever reads after this thread was killed sees
// them in this order.
ALWAYS_INLINE void nursery_fence(void)
{
    atomic_signal_fence(memory_order_seq_cst);
}

ALWAYS_INLINE struct nursery_set *nursery_set_of(struct lane_header *lane, uint64_t address)
{
    const uint64_t granule = address >> 4; // blocks of most allocators lie 16 bytes apart
    return lane_nursery_tables(lane)->sets + ((granule ^ granule >> 10) & lane->nursery.mask);
}

// Bit i: way i holds `address`. At most one is set.
ALWAYS_INLINE uint32_t nursery_ways_at(const struct nursery_set *set, uint64_t address)
{
    return (uint32_t)(set->addresses[0] == address) |
           (uint32_t)(set->addresses[1] == address) << 1 |
           (uint32_t)(set->addresses[2] == address) << 2 |
           (uint32_t)(set->addresses[3] == address) << 3;
}

ALWAYS_INLINE enum nursery_block_state nursery_state(const struct nursery_set *set, uint32_t way)
{
    return (enum nursery_block_state)(set->slots[way] >> NURSERY_STATE_SHIFT);
}

ALWAYS_INLINE void
nursery_set_state(struct nursery_set *set, uint32_t way, enum nursery_block_state state)
{
    set->slots[way] = (set->slots[way] & NURSERY_SLOT_MASK) | (uint32_t)state
                                                                  << NURSERY_STATE_SHIFT;
}

// The place of a key among the folds.
ALWAYS_INLINE uint32_t nursery_fold_index(uint32_t slot, uint32_t size)
{
    return (slot * 0x9e3779b1u ^ size * 0x85ebca6bu) >> 24;
}

ALWAYS_INLINE uint64_t nursery_fold_key(uint32_t slot, uint32_t size)
{
    return NURSERY_FOLD_USED | (uint64_t)slot << 32 | size;
}

// To be called first in each hook that records: a TICK if time has passed since the last.
ALWAYS_INLINE bool nursery_begin(struct lane_producer *p)
{
    // Relaxed: threads that hand a block to each other synchronize by doing so, and one atomic
    // never seems to run backwards along such a chain.
    const uint64_t now_ms = atomic_load_explicit(&p->session->clock_ms, memory_order_relaxed);
    return LIKELY(now_ms == p->clock_ms) || nursery_turn(p, now_ms);
}

// Way `way` of `set`, which holds nothing that is not sent, becomes a HELD block.
ALWAYS_INLINE void nursery_put(struct lane_header *lane,
                               struct nursery_set *set,
                               uint32_t way,
                               uint64_t address,
                               uint32_t size,
                               uint32_t slot)
{
    struct nursery *n = &lane->nursery;
    const uint32_t index = (uint32_t)(set - lane_nursery_tables(lane)->sets);
    n->touched[index / 64] |= (uint64_t)1 << index % 64;
    set->addresses[way] = address;
    set->sizes[way] = size;
    nursery_fence();
    set->slots[way] = slot | (uint32_t)NURSERY_HELD << NURSERY_STATE_SHIFT;
    nursery_fence();
    const uint64_t held = nursery_relaxed(&n->held_bytes) + size;
    const uint64_t highest = nursery_relaxed(&n->highest_bytes);
    atomic_store_explicit(&n->held_bytes, held, memory_order_relaxed);
    atomic_store_explicit(&n->highest_bytes, held > highest ? held : highest, memory_order_relaxed);
    n->hold_count++;
    n->last_allocated = address;
}

// A block was allocated; `slot` names its stack.
ALWAYS_INLINE bool
nursery_allocate(struct lane_producer *p, uint64_t address, uint64_t size_bytes, uint32_t slot)
{
    struct nursery_set *set = nursery_set_of(p->lane, address);
    const uint32_t ways = nursery_ways_at(set, address);
    const uint32_t way = (uint32_t)__builtin_ctz(ways | 1u << NURSERY_WAYS);
    const struct nursery *n = &p->lane->nursery;
    if (UNLIKELY(ways == 0 || nursery_relaxed(&n->held_bytes) + size_bytes > n->limit_bytes ||
                 nursery_state(set, way) >= NURSERY_HELD)) {
        return nursery_allocate_slowly(p, address, size_bytes, slot);
    }
    nursery_put(p->lane, set, way, address, (uint32_t)size_bytes, slot);
    return true;
}

// Counts the HELD block in `way` of `set` as allocated and freed.
ALWAYS_INLINE bool
nursery_fold(struct lane_producer *p, struct nursery_set *set, uint32_t way, bool is_temporary)
{
    struct nursery *n = &p->lane->nursery;
    const uint32_t slot = set->slots[way] & NURSERY_SLOT_MASK;
    const uint32_t size = set->sizes[way];
    const uint64_t key = nursery_fold_key(slot, size);
    struct nursery_fold *fold =
        lane_nursery_tables(p->lane)->folds + nursery_fold_index(slot, size);
    if (UNLIKELY(fold->key != key || (uint32_t)fold->counts >= NURSERY_COUNT_MAX) &&
        !nursery_use_fold(p, fold, key)) {
        return false;
    }
    n->mark = fold->counts;
    nursery_fence();
    set->slots[way] = slot | (uint32_t)NURSERY_FOLDING << NURSERY_STATE_SHIFT;
    nursery_fence();
    fold->counts = n->mark + 1 + ((uint64_t)is_temporary << 32);
    nursery_fence();
    set->slots[way] = (uint32_t)NURSERY_VACANT << NURSERY_STATE_SHIFT;
    nursery_fence();
    atomic_store_explicit(&n->held_bytes, nursery_relaxed(&n->held_bytes) - size,
                          memory_order_relaxed);
    return true;
}

// A block is about to be freed.
ALWAYS_INLINE bool nursery_free(struct lane_producer *p, uint64_t address)
{
    struct nursery *n = &p->lane->nursery;
    const bool is_temporary = n->last_allocated == address;
    n->last_allocated = 0;
    struct nursery_set *set = nursery_set_of(p->lane, address);
    const uint32_t ways = nursery_ways_at(set, address);
    const uint32_t way = (uint32_t)__builtin_ctz(ways | 1u << (NURSERY_WAYS - 1));
    if (LIKELY(ways != 0 && nursery_state(set, way) == NURSERY_HELD)) {
        return nursery_fold(p, set, way, is_temporary);
    }
    return nursery_send_free(p, address, is_temporary);
}

// The thread did something that is not recorded: what it frees next is not what it allocated last.
ALWAYS_INLINE void nursery_forget_latest(struct lane_producer *p)
{
    p->lane->nursery.last_allocated = 0;
}

// A block was reallocated; `slot` names the stack of the new one.
bool nursery_reallocate(struct lane_producer *p,
                        uint64_t old_address,
                        uint64_t address,
                        uint64_t size_bytes,
                        uint32_t slot) MUST_USE;
