// SPDX-License-Identifier: MIT
// order_events: the events of a thread that keeps no book. Each is a record in the ring at once.
//
//   allocation   ALLOC, after the allocator returned
//   free         FREE, before the allocator is called
//   realloc      REALLOC, after both; with stamps a FREE, whose stamp is of before, and an ALLOC
//
// Once several threads record, each has a stamp (stamp.h): the sum of all threads depends on the
// order of all their events.
//
// Context: T, the lane's thread under the guard, not reentrant, after lane_turn; hooks use
// lane_entry.h, which calls it. False: the recording has ended.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "session/layout.h"
#include "session/wire.h"
#include "target/producer/freed_note.h"
#include "target/producer/lane_producer.h"

// Send a block of any size.
bool order_allocate_slowly(struct lane_producer *p,
                           uint64_t address,
                           uint64_t size_bytes,
                           uint32_t slot) MUST_USE;

// Send a reallocation; `slot` names the new block's stack.
bool order_reallocate(struct lane_producer *p,
                      uint64_t old_address,
                      uint64_t address,
                      uint64_t size_bytes,
                      uint32_t slot,
                      struct freed_note freed) MUST_USE;

// Tell the recorder that the next allocation is a realloc that grows a block of old_bytes; 0: of
// the block that the thread freed latest.
bool order_pass_growth(struct lane_producer *p, uint64_t old_bytes, uint64_t bytes, uint32_t slot)
    MUST_USE;

// Send an allocated block; `slot` names its stack.
ALWAYS_INLINE bool
order_allocate(struct lane_producer *p, uint64_t address, uint64_t size_bytes, uint32_t slot)
{
    if (UNLIKELY(size_bytes > WIRE_SIZE_MAX)) {
        return order_allocate_slowly(p, address, size_bytes, slot);
    }
    uint64_t *word = lane_producer_reserve_event(p, 2);
    if (UNLIKELY(word == NULL)) {
        return false;
    }
    word[0] = wire_word(WIRE_ALLOC, address);
    word[1] = wire_slot_size(slot, size_bytes);
    lane_producer_advance(p, 2);
    lane_producer_publish(p);
    p->last_allocated = address;
    return true;
}

// Send the free of a block, before the allocator is called.
ALWAYS_INLINE bool order_free(struct lane_producer *p, uint64_t address)
{
    const bool is_temporary = p->last_allocated == address;
    p->last_allocated = 0;
    uint64_t *word = lane_producer_reserve_event(p, 1);
    if (UNLIKELY(word == NULL)) {
        return false;
    }
    word[0] = wire_word(is_temporary ? WIRE_FREE_TEMPORARY : WIRE_FREE, address);
    lane_producer_advance(p, 1);
    lane_producer_publish(p);
    return true;
}
