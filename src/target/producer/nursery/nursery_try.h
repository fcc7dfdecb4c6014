// SPDX-License-Identifier: MIT
// nursery_try: the common cases of nursery.h, for hooks that make no call in them.
//
// Each function either handles an event completely, or changes nothing and returns false. The
// caller then takes the slow path (lane_allocate or lane_free), which handles every case. So no
// variable of the caller has to outlive a call. Context: T, as nursery.h.
#pragma once

#include "target/producer/book/book_try.h"
#include "target/producer/nursery/nursery.h"

// Whether no time has passed since the last TICK, and no other thread has begun to record.
ALWAYS_INLINE bool nursery_try_now(const struct lane_producer *p)
{
    return LIKELY(nursery_clock(p) == p->clock && nursery_order(p) == p->order);
}

// Whether no time has passed. Books need no order.
ALWAYS_INLINE bool book_try_now(const struct lane_producer *p)
{
    return LIKELY(nursery_clock(p) == p->clock);
}

// Whether the ring has room for an event of `words` words, and for its stamp.
ALWAYS_INLINE bool nursery_try_room(const struct lane_producer *p, size_t words)
{
    return LIKELY(p->pos + (words + p->is_ordered) * sizeof(uint64_t) <= p->limit);
}

// Record an allocated block; `slot` names its stack.
ALWAYS_INLINE bool
nursery_try_allocate(struct lane_producer *p, uint64_t address, uint64_t size_bytes, uint32_t slot)
{
    const struct nursery *n = &p->lane->nursery;
    if (p->directory != NULL) {
        return book_try_now(p) && book_try_allocate(p, address, size_bytes, slot);
    }
    if (UNLIKELY(!nursery_try_now(p)) || book_is_kept(p)) {
        return false;
    }
    if (n->is_holding == 0) {
        return LIKELY(size_bytes <= WIRE_SIZE_MAX) && nursery_try_room(p, 2) &&
               nursery_pass_block(p, address, size_bytes, slot);
    }
    struct nursery_block *block = nursery_block_of(p->lane, address);
    if (UNLIKELY(block->place != 0 || !nursery_may_hold(n, size_bytes) ||
                 nursery_is_high_water(n, size_bytes))) {
        return false;
    }
    nursery_put(p, block, address, (uint32_t)size_bytes, slot);
    return true;
}

// Record the free of a block, before the allocator is called.
ALWAYS_INLINE bool nursery_try_free(struct lane_producer *p, uint64_t address)
{
    struct nursery *n = &p->lane->nursery;
    if (p->directory != NULL) {
        return book_try_now(p) && book_try_free(p, address);
    }
    if (UNLIKELY(!nursery_try_now(p)) || book_is_kept(p)) {
        return false;
    }
    const bool is_temporary = n->last_allocated == address;
    if (n->is_holding == 0) {
        if (!nursery_try_room(p, 1)) {
            return false;
        }
        n->last_allocated = 0;
        return nursery_pass_free(p, address, is_temporary);
    }
    struct nursery_block *block = nursery_block_of(p->lane, address);
    if (UNLIKELY(block->place != address)) {
        return false;
    }
    const uint64_t kind = nursery_freed_kind(block, is_temporary);
    struct nursery_counter *counter = nursery_counter_of(p->lane, kind);
    if (UNLIKELY(counter == NULL || nursery_was_at_high_water(n, kind) ||
                 nursery_is_doubtful(p, block))) {
        return false;
    }
    n->last_allocated = 0;
    nursery_count(n, counter, block, kind);
    return true;
}
