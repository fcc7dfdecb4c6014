// SPDX-License-Identifier: MIT
// lane_entry: what hooks may write to their thread's lane.
//
// The recorder empties the nursery of a thread that has been idle since the tick in which it had
// its last event. Within a tick the thread changes its nursery without a lock. So whatever takes
// the thread into another tick has to turn the nursery first, or both sides change it at once, and
// blocks get lost. Each function here enters the nursery (nursery_begin) before it writes. The
// functions of nursery.h and lane_producer.h that do not are for this folder, and for the stack
// dictionary, which enters it itself; tools/check_style.py sees to that.
//
// Context: T, the lane's thread under the guard, as nursery.h. False: the recording has ended.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/compiler.h"
#include "session/wire.h"
#include "target/producer/nursery/nursery.h"

// Enter only: before the level of sampling is read, and so that the thread is known to record.
MUST_USE ALWAYS_INLINE bool lane_enter(struct lane_producer *p)
{
    return LIKELY(nursery_begin(p));
}

// Record an allocated block; `slot` names its stack.
MUST_USE ALWAYS_INLINE bool
lane_allocate(struct lane_producer *p, uint64_t address, uint64_t size_bytes, uint32_t slot)
{
    return lane_enter(p) && LIKELY(nursery_allocate(p, address, size_bytes, slot));
}

// Record a block that was chosen at this level, see nursery_allocate_sampled.
MUST_USE ALWAYS_INLINE bool lane_allocate_sampled(
    struct lane_producer *p, uint64_t address, uint64_t size_bytes, uint32_t slot, uint32_t level)
{
    return lane_enter(p) && nursery_allocate_sampled(p, address, size_bytes, slot, level);
}

// Record the free of a block, before the allocator is called.
MUST_USE ALWAYS_INLINE bool lane_free(struct lane_producer *p, uint64_t address)
{
    return lane_enter(p) && LIKELY(nursery_free(p, address));
}

// Record the free of a block that began when `freed` was noted.
MUST_USE static inline bool
lane_free_since(struct lane_producer *p, uint64_t address, struct freed_note freed)
{
    if (book_is_kept(p)) {
        return lane_enter(p) && book_count_freed(p, &freed.taken);
    }
    p->given_stamp = freed.stamp;
    p->given_latest = freed.latest;
    const bool is_recorded = lane_free(p, address);
    p->given_stamp = 0;
    return is_recorded;
}

// Note a block that is not recorded: the thread's next free does not end a temporary allocation.
static inline void lane_pass(struct lane_producer *p, uint64_t address, uint64_t size_bytes)
{
    if (book_is_kept(p) && lane_enter(p)) {
        book_pass(p, address, size_bytes);
    }
    nursery_forget_latest(p);
}

// Record a reallocation, see nursery_reallocate.
MUST_USE ALWAYS_INLINE bool lane_reallocate(struct lane_producer *p,
                                            uint64_t old_address,
                                            uint64_t address,
                                            uint64_t size_bytes,
                                            uint32_t slot,
                                            struct freed_note freed)
{
    return lane_enter(p) &&
           LIKELY(nursery_reallocate(p, old_address, address, size_bytes, slot, freed));
}

// Send a record of `count` words that is neither a block nor a free.
MUST_USE static inline bool lane_send(struct lane_producer *p, const uint64_t *words, size_t count)
{
    uint64_t *to = lane_enter(p) ? lane_producer_reserve(p, count) : NULL;
    if (UNLIKELY(to == NULL)) {
        return false;
    }
    __builtin_memcpy(to, words, count * sizeof(*words));
    lane_producer_advance(p, count);
    lane_producer_publish(p);
    return true;
}

// Send a text that has a moment among the thread's events. If the recording has ended, the next
// event fails.
static inline void
lane_send_mark(struct lane_producer *p, enum wire_text_kind kind, struct bytes text)
{
    if (lane_enter(p)) {
        lane_producer_send_text(p, kind, text, false);
        lane_producer_publish(p);
    }
}

// Send a text that describes the thread or its process; `more`: the caller will continue it. This
// enters nothing: a thread that has no events yet is not to be taken for one that records, and a
// text without a moment changes neither the nursery nor the thread's clock.
static inline void
lane_describe(struct lane_producer *p, enum wire_text_kind kind, struct bytes text, bool more)
{
    lane_producer_send_text(p, kind, text, more);
    lane_producer_publish(p);
}

// Send all held blocks, and hold none while scopes are open, see nursery_suspend.
MUST_USE static inline bool lane_suspend(struct lane_producer *p)
{
    return lane_enter(p) && nursery_suspend(p);
}
