// SPDX-License-Identifier: MIT
// lane_entry: what hooks may write to their thread's lane.
//
// Each function here begins the thread's tick (lane_turn.h) before it writes, or the recorder and
// the thread would change its book at once, and events would get lost. A thread that keeps a book
// counts its events (book.h), any other sends them (order_events.h). The functions of these headers
// and of lane_producer.h that do not begin the tick are for this folder, and for the stack
// dictionary, which enters it itself; tools/check_style.py sees to that.
//
// Context: T, the lane's thread under the guard, not reentrant. False: the recording has ended.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/compiler.h"
#include "session/wire.h"
#include "target/producer/book/book_try.h"
#include "target/producer/entry/lane_turn.h"
#include "target/producer/entry/order_events.h"

// Enter only: before the level of sampling is read, and so that the thread is known to record.
MUST_USE ALWAYS_INLINE bool lane_enter(struct lane_producer *p)
{
    const uint64_t clock = lane_clock(p);
    return LIKELY(clock == p->clock && lane_order(p) == p->order) || lane_turn(p, clock);
}

// Record an allocated block; `slot` names its stack.
MUST_USE ALWAYS_INLINE bool
lane_allocate(struct lane_producer *p, uint64_t address, uint64_t size_bytes, uint32_t slot)
{
    if (!lane_enter(p)) {
        return false;
    }
    if (!book_is_kept(p)) {
        return LIKELY(order_allocate(p, address, size_bytes, slot));
    }
    if (UNLIKELY(p->given_stamp != 0)) {
        return book_allocate_later(p, address, size_bytes, slot);
    }
    return (p->directory != NULL && book_try_allocate(p, address, size_bytes, slot)) ||
           book_allocate(p, address, size_bytes, slot);
}

// Record a block that was chosen (sampling_level.h). The thread keeps a book.
MUST_USE static inline bool
lane_allocate_chosen(struct lane_producer *p, uint64_t address, uint64_t size_bytes, uint32_t slot)
{
    return lane_enter(p) &&
           (p->given_stamp == 0 ? book_allocate(p, address, size_bytes, slot)
                                : book_allocate_later(p, address, size_bytes, slot));
}

// Record the free of a block, before the allocator is called.
MUST_USE ALWAYS_INLINE bool lane_free(struct lane_producer *p, uint64_t address)
{
    if (!lane_enter(p)) {
        return false;
    }
    if (!book_is_kept(p)) {
        return LIKELY(order_free(p, address));
    }
    return (p->directory != NULL && book_try_free(p, address)) || book_free(p, address);
}

// Note that the block at `address` is about to be reallocated, once `stamp` is announced.
MUST_USE static inline struct freed_note
lane_begin_move(struct lane_producer *p, uint64_t address, uint64_t stamp)
{
    return book_is_kept(p) ? (struct freed_note){.stamp = 1, .taken = book_take(p->words, address)}
                           : (struct freed_note){.stamp = stamp};
}

// Record the free of a block that began when `freed` was noted.
MUST_USE static inline bool
lane_free_since(struct lane_producer *p, uint64_t address, struct freed_note freed)
{
    if (book_is_kept(p)) {
        return lane_enter(p) && book_count_freed(p, &freed.taken);
    }
    p->given_stamp = freed.stamp;
    const bool is_recorded = lane_free(p, address);
    p->given_stamp = 0;
    return is_recorded;
}

// Note an unrecorded event of the thread: its next free does not end a temporary allocation.
ALWAYS_INLINE void lane_forget_latest(struct lane_producer *p)
{
    p->last_allocated = 0;
}

// Note a block that is not recorded.
static inline void lane_pass(struct lane_producer *p, uint64_t address, uint64_t size_bytes)
{
    if (book_is_kept(p) && lane_enter(p)) {
        book_pass(p, address, size_bytes);
    }
    lane_forget_latest(p);
}

// Record a reallocation in a book. The old block's word was taken before the allocator was called,
// unless it is the program's own allocator (include/cairn.h).
MUST_USE static inline bool lane_reallocate_in_book(struct lane_producer *p,
                                                    uint64_t old_address,
                                                    uint64_t address,
                                                    uint64_t size_bytes,
                                                    uint32_t slot,
                                                    struct freed_note freed)
{
    const struct word_block old = freed.stamp != 0 ? freed.taken : book_take(p->words, old_address);
    return book_count_freed(p, &old) &&
           (old.row == 0 || order_pass_growth(p, old.size_bytes, size_bytes, slot)) &&
           lane_allocate(p, address, size_bytes, slot);
}

// Record a reallocation; `slot` names the new block's stack, `freed` is from lane_begin_move.
MUST_USE ALWAYS_INLINE bool lane_reallocate(struct lane_producer *p,
                                            uint64_t old_address,
                                            uint64_t address,
                                            uint64_t size_bytes,
                                            uint32_t slot,
                                            struct freed_note freed)
{
    return lane_enter(p) &&
           LIKELY(book_is_kept(p)
                      ? lane_reallocate_in_book(p, old_address, address, size_bytes, slot, freed)
                      : order_reallocate(p, old_address, address, size_bytes, slot, freed));
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
// text without a moment does not change the thread's clock.
static inline void
lane_describe(struct lane_producer *p, enum wire_text_kind kind, struct bytes text, bool more)
{
    lane_producer_send_text(p, kind, text, more);
    lane_producer_publish(p);
}
