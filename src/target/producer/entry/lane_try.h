// SPDX-License-Identifier: MIT
// lane_try: the common cases of lane_entry.h, for hooks that make no call in them.
//
// Each function either handles an event completely, or changes nothing and returns false. The
// caller then takes the slow path (lane_allocate or lane_free), which handles every case. So no
// variable of the caller has to outlive a call. Context: T, as lane_entry.h.
#pragma once

#include "target/producer/book/book_try.h"
#include "target/producer/entry/lane_turn.h"

// Record an allocated block; `slot` names its stack.
ALWAYS_INLINE bool
lane_try_allocate(struct lane_producer *p, uint64_t address, uint64_t size_bytes, uint32_t slot)
{
    return LIKELY(p->directory != NULL) && lane_is_in_tick(p) &&
           book_try_allocate(p, address, size_bytes, slot);
}

// Record the free of a block, before the allocator is called.
ALWAYS_INLINE bool lane_try_free(struct lane_producer *p, uint64_t address)
{
    return LIKELY(p->directory != NULL) && lane_is_in_tick(p) && book_try_free(p, address);
}
