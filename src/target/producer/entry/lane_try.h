// SPDX-License-Identifier: MIT
// lane_try: the common cases of lane_entry.h, for hooks that make no call in them.
//
// Each function either handles an event completely, or changes nothing and returns false. The
// caller then takes the slow path (lane_allocate or lane_free), which handles every case. So no
// variable of the caller has to outlive a call. Context: T, as lane_entry.h.
#pragma once

#include "target/producer/book/book_try.h"
#include "target/producer/entry/lane_turn.h"
#include "target/producer/entry/order_events.h"

// Whether the ring has room for an event of `words` words, and for its stamp.
ALWAYS_INLINE bool order_try_room(const struct lane_producer *p, size_t words)
{
    return LIKELY(p->pos + (words + p->is_ordered) * sizeof(uint64_t) <= p->limit);
}

// Record an allocated block; `slot` names its stack.
ALWAYS_INLINE bool
lane_try_allocate(struct lane_producer *p, uint64_t address, uint64_t size_bytes, uint32_t slot)
{
    if (LIKELY(p->directory != NULL)) { // books need no order
        return LIKELY(lane_clock(p) == p->clock) && book_try_allocate(p, address, size_bytes, slot);
    }
    return lane_is_in_tick(p) && !book_is_kept(p) && LIKELY(size_bytes <= WIRE_SIZE_MAX) &&
           order_try_room(p, 2) && order_allocate(p, address, size_bytes, slot);
}

// Record the free of a block, before the allocator is called.
ALWAYS_INLINE bool lane_try_free(struct lane_producer *p, uint64_t address)
{
    if (LIKELY(p->directory != NULL)) {
        return LIKELY(lane_clock(p) == p->clock) && book_try_free(p, address);
    }
    return lane_is_in_tick(p) && !book_is_kept(p) && order_try_room(p, 1) && order_free(p, address);
}
