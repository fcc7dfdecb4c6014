// SPDX-License-Identifier: MIT
// lane_producer: writes records to one lane: reserve words, fill them, publish.
//
//        read_pos            published             pos            soft_limit
//   ring ...|=== unread ======|--- being written ---|...............|......
//
//   lane_producer_tick()      -> the recorder's clock moved: a TICK record
//   lane_producer_reserve(n)  -> n contiguous words at pos, or NULL if recording has ended
//   lane_producer_advance(n)  -> they are written
//   lane_producer_publish()   -> one release store: the recorder may read them
//
// Up to the position `soft_limit` the producer need not read the recorder's side of the lane.
// `limit` equals soft_limit, but never exceeds the end of the ring, so the common reserve is one
// comparison. `window` is the address that position 0 would have on this lap, so finding an address
// is one addition. Beyond soft_limit the producer wakes the recorder when the ring is half full,
// once per crossing; with a full ring it publishes, wakes and waits until half of it is free. The
// ring starts small. After it was half full it doubles before the thread waits: as soon as its
// unread bytes have the same places in a ring of twice the size.
//
//   a ring of 2 laps at   0       R       2R      3R      pos
//   places in R           0.......R0......R0......R
//   places in 2R          0...............2R..............     equal for a lap from 0, 2R, 4R, ...
//
// Waiting is bounded, because a mistake of the recorder must never block the program. The wait ends
// when the recorder makes room, when the session has ended, or when the recorder is dead. It is
// dead if its clock stopped and its process has exited or is a zombie, if its clock stopped for
// LANE_PATIENCE_MS, or if it did not read this lane for LANE_FORGOTTEN_MS. A pid alone proves
// nothing, for it may belong to another pid namespace. Time in which the target itself was stopped
// does not count.
//
// With SESSION_OVERFLOW_SAMPLE a ring has its largest size from the beginning. `level` is how far
// it is beyond half full, in steps of a LANE_LEVEL_STEPS-th of it; the thread chooses fewer blocks
// at a higher one (byte_sampler.h). Frees do not raise it, because they have to be sent at any
// level:
//
//   |------ half: all events ------|-- 32 steps: frees --|- 16 levels of blocks -|- 16: frees -|
//
// Only frees that do not fit into their first part raise the level, because without room for any
// block the thread would have to wait. It does so when the ring is full.
//
// Invariants: published <= pos <= read_pos + ring_bytes; all are multiples of 8; no record wraps.
// A reserve may publish earlier words, therefore a record is complete when it is advanced.
// Context: T, only the thread that owns the lane, not reentrant (record_guard.h ensures this);
// async-cancel and EINTR safe: the recorder never sees unpublished words. errno is kept.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/compiler.h"
#include "base/err.h"
#include "session/books/sampling_level.h"
#include "session/layout.h"
#include "session/recorder_wake.h"
#include "session/wire.h"
#include "target/producer/words/process_words.h"

#define LANE_LEVEL_STEPS 128u // of a ring
#define LANE_FREE_STEPS  32u  // of frees, which do not raise the level

struct lane_producer {
    struct session_header *session; // borrowed
    struct lane_header *lane;       // borrowed; ours until it is closed
    uint8_t *ring;
    uint64_t pos;
    uint64_t limit;   // pos + reserved words may reach it without further checks
    uintptr_t window; // + pos = the address of pos
    uint64_t soft_limit;
    uint64_t ring_bytes;
    uint64_t clock;       // the session's clock at the last TICK
    uint64_t tick_pos;    // its end
    bool was_half_full;   // half full was seen since the last growth
    bool is_sampling;     // SESSION_OVERFLOW_SAMPLE
    uint32_t level;       // of sampling; 0: less than half full
    uint64_t free_bytes;  // of the frees sent since the ring was last less than half full
    uint32_t open_scopes; // bit n: the thread's peak is followed in scope n (stats_query.h)
    bool is_given_later;  // the next event is one of a handler, in whose place is a word (book.h)
    uint64_t last_allocated;     // address, if the thread's latest event allocated; else 0
    struct process_words *words; // borrowed; NULL: the thread keeps no book (book/book.h)
    _Atomic(struct words_region *) *directory; // of `words`; NULL with scopes or --blocks, too
    uint64_t now_ms;                           // of this tick, if it keeps a book
    uint64_t slice_ms;                         // when the recording's slice began
    uint64_t recent_code;                      // births in `fine` from this on are exact, of this
    uint64_t recent_ms;                        // slice, and so many ms or fewer ago
    uint64_t fine_birth;                       // of this tick, as it is in a word of that table
    uint64_t middle_birth;
    uint64_t coarse_birth;
    const _Atomic uint32_t *tiny_below; // of `words`
    uint32_t slice_bits;                // a slice has 1 << slice_bits ms
    uint32_t last_row;                  // of the thread's latest allocation
    uint32_t row_level;                 // of sampling, of the rows that get a number
    uint32_t
        *rows; // borrowed: by stack slot, the number of its row, and its level << WORD_ROW_BITS
};

// Begin to write into a lane that was just claimed.
void lane_producer_init(struct lane_producer *p,
                        struct session_header *session,
                        struct lane_header *lane);

// Lower `level` if the recorder has made room since it was last set.
void lane_producer_relax(struct lane_producer *p);

// Note that everything since position `from` was sent because of a free.
ALWAYS_INLINE void lane_producer_note_free(struct lane_producer *p, uint64_t from)
{
    p->free_bytes += p->level != 0 ? p->pos - from : 0;
}

// Forget unpublished words.
void lane_producer_rewind(struct lane_producer *p);

// Publish and give the lane back to the recorder. `p` must not be used afterwards.
void lane_producer_close(struct lane_producer *p);

// Do the rest of reserve: make room for `bytes` contiguous bytes, waiting if needed. NULL:
// recording has ended.
uint64_t *lane_producer_make_room(struct lane_producer *p, size_t bytes);

// Do the rest of tick: `clock` reads now_ms (recorder_wake.h). False: the session has ended.
bool lane_producer_send_tick(struct lane_producer *p, uint64_t clock, uint64_t now_ms);

// Return the address of the word at `pos`.
ALWAYS_INLINE uint64_t *lane_producer_place(const struct lane_producer *p)
{
    return (uint64_t *)(p->window + p->pos);
}

// Return `words` contiguous words, at most WIRE_RECORD_BYTES_MAX / 8. NULL: recording has ended.
ALWAYS_INLINE uint64_t *lane_producer_reserve(struct lane_producer *p, size_t words)
{
    const size_t bytes = words * sizeof(uint64_t);
    if (UNLIKELY(p->pos + bytes > p->limit)) {
        return lane_producer_make_room(p, bytes);
    }
    return lane_producer_place(p);
}

ALWAYS_INLINE void lane_producer_advance(struct lane_producer *p, size_t words)
{
    p->pos += words * sizeof(uint64_t);
}

ALWAYS_INLINE void lane_producer_publish(struct lane_producer *p)
{
    // Release: pairs with the recorder's acquire of write_pos; the words before it are complete.
    atomic_store_explicit(&p->lane->write_pos, p->pos, memory_order_release);
}

// Write a TICK if time has passed since the last one. False: recording has ended.
ALWAYS_INLINE bool lane_producer_tick(struct lane_producer *p)
{
    // Relaxed: threads that hand a block to each other synchronize by doing so, and one atomic
    // never runs backwards along such a chain.
    const uint64_t clock = atomic_load_explicit(&p->session->clock_ms, memory_order_relaxed);
    if (LIKELY(clock == p->clock)) {
        return true;
    }
    return lane_producer_send_tick(p, clock, session_time_of(p->session, clock));
}

// Begin a STACK of `count` <= WIRE_STACK_FRAMES_MAX frames on top of `base`; `flags` is enum
// wire_stack_flags. Returns the place of its frames, packed as in wire.h. When they are written,
// advance by lane_stack_words(count). NULL: recording has ended.
uint64_t *lane_producer_begin_stack(
    struct lane_producer *p, uint32_t slot, uint32_t flags, uint64_t base, uint32_t count);

static inline size_t lane_stack_words(uint32_t count)
{
    return 2 + (size_t)count;
}

struct lane_module {
    uint32_t slot;
    uint32_t flags; // enum wire_module_flags
    uint64_t bias;
    uint64_t start;
    uint64_t end;
    struct bytes build_id; // truncated to LANE_MODULE_ID_BYTES_MAX
    struct bytes path;     // truncated to LANE_MODULE_PATH_BYTES_MAX
};
#define LANE_MODULE_ID_BYTES_MAX   64u
#define LANE_MODULE_PATH_BYTES_MAX 4096u

// Write a MODULE, advanced but not published. ERR_DEAD: recording has ended.
MUST_USE enum err lane_producer_send_module(struct lane_producer *p,
                                            const struct lane_module *module);

// Write a text of any length as one TEXT or, with WIRE_TEXT_MORE, several, advanced but not
// published. `more`: the caller will continue it. Does not report failure: if recording has ended,
// the next event fails.
void lane_producer_send_text(struct lane_producer *p,
                             enum wire_text_kind kind,
                             struct bytes text,
                             bool more);
