// SPDX-License-Identifier: MIT
// lane_entry: what hooks may write to their thread's lane.
//
// Each function here begins the thread's tick (lane_turn.h) before it writes, or the recorder and
// the thread would change its book at once, and events would get lost. A thread whose process has
// no memory for words keeps no book: its allocations are counted as lost. The functions of book.h
// and lane_producer.h that do not begin the tick are for this folder, and for the stack dictionary,
// which enters it itself; tools/check_style.py sees to that.
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
#include "target/producer/freed_note.h"

// Enter only: before the level of sampling is read, and so that the thread is known to record.
MUST_USE ALWAYS_INLINE bool lane_enter(struct lane_producer *p)
{
    const uint64_t clock = lane_clock(p);
    return LIKELY(clock == p->clock) || lane_turn(p, clock);
}

// Record an allocated block; `slot` names its stack.
MUST_USE ALWAYS_INLINE bool
lane_allocate(struct lane_producer *p, uint64_t address, uint64_t size_bytes, uint32_t slot)
{
    if (!lane_enter(p)) {
        return false;
    }
    if (UNLIKELY(!book_is_kept(p))) {
        session_count(p->session, LOST_no_words, 1);
        return true;
    }
    if (UNLIKELY(p->is_given_later)) {
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
           (!p->is_given_later ? book_allocate(p, address, size_bytes, slot)
                               : book_allocate_later(p, address, size_bytes, slot));
}

// Record the free of a block, before the allocator is called.
MUST_USE ALWAYS_INLINE bool lane_free(struct lane_producer *p, uint64_t address)
{
    if (!lane_enter(p)) {
        return false;
    }
    if (UNLIKELY(!book_is_kept(p))) {
        return true; // its block was lost
    }
    return (p->directory != NULL && book_try_free(p, address)) || book_free(p, address);
}

// Record the free of a block whose word was taken.
MUST_USE static inline bool lane_free_taken(struct lane_producer *p, const struct word_block *taken)
{
    return lane_enter(p) && (UNLIKELY(!book_is_kept(p)) || book_count_freed(p, taken));
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

// Tell the recorder that a realloc of the stack in `slot` has grown a block of old_bytes.
MUST_USE static inline bool
lane_send_growth(struct lane_producer *p, uint64_t old_bytes, uint64_t bytes, uint32_t slot)
{
    if (LIKELY(bytes < WIRE_GREW_MIN) || bytes <= old_bytes || bytes > WIRE_SIZE_MAX) {
        return true;
    }
    uint64_t *word = lane_producer_reserve(p, 2);
    if (UNLIKELY(word == NULL)) {
        return false;
    }
    word[0] = wire_word(WIRE_GREW, old_bytes);
    word[1] = wire_slot_size(slot, bytes);
    lane_producer_advance(p, 2);
    lane_producer_publish(p);
    return true;
}

// Record a reallocation; `slot` names the new block's stack. The old block's word was taken before
// the allocator was called, unless it is the program's own allocator (include/cairn.h).
MUST_USE static inline bool lane_reallocate(struct lane_producer *p,
                                            uint64_t old_address,
                                            uint64_t address,
                                            uint64_t size_bytes,
                                            uint32_t slot,
                                            const struct freed_note *freed)
{
    if (!lane_enter(p)) {
        return false;
    }
    if (UNLIKELY(!book_is_kept(p))) {
        return lane_allocate(p, address, size_bytes, slot);
    }
    const struct word_block old = freed->is_taken ? freed->taken : book_take(p->words, old_address);
    return book_count_freed(p, &old) &&
           (old.row == 0 || lane_send_growth(p, old.size_bytes, size_bytes, slot)) &&
           lane_allocate(p, address, size_bytes, slot);
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
