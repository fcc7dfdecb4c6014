// SPDX-License-Identifier: MIT
// nursery_layout: the part of a lane that holds what its thread has not sent yet (nursery.h).
//
//   struct nursery          head, in the lane's header
//   struct nursery_tables   folds: counts of pairs; sets: blocks, four to a cache line
//
// The thread T writes all of it. The recorder R reads it when the thread is gone, and takes it
// (then it writes too) from a thread that stands still, under `owner`. So that nothing is lost or
// counted twice when the thread is killed between any two of its stores, what takes two stores is
// written in three steps; `mark` tells whether the second was done:
//
//   a fold      mark = counts before; block FOLDING;         counts = new;       block VACANT
//   a sending   mark = ring position behind the record;
//               block SENDING or NURSERY_FOLD_SENDING set;   record published;   block SENT, key 0
//
// Trust: R believes nothing that it reads here.
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#define NURSERY_WAYS     4u
#define NURSERY_SETS_MIN 64u
#define NURSERY_SETS_MAX 1024u
#define NURSERY_FOLDS    256u
#define NURSERY_HISTORY  32u // ticks

enum nursery_owner {
    NURSERY_FREE = 0,
    NURSERY_OF_THREAD = 1,
    NURSERY_OF_RECORDER = 2,
};

enum nursery_block_state {
    NURSERY_VACANT = 0,
    NURSERY_SENT = 1, // kept so that its size is known when it is freed
    NURSERY_HELD = 2,
    NURSERY_FOLDING = 3,
    NURSERY_SENDING = 4,
};

#define NURSERY_STATE_SHIFT 24u
#define NURSERY_SLOT_MASK   ((1u << NURSERY_STATE_SHIFT) - 1)

struct nursery_set {
    uint64_t addresses[NURSERY_WAYS];
    uint32_t sizes[NURSERY_WAYS];
    uint32_t slots[NURSERY_WAYS]; // slot | enum nursery_block_state << NURSERY_STATE_SHIFT
};

#define NURSERY_FOLD_USED    ((uint64_t)1 << 63)
#define NURSERY_FOLD_SENDING ((uint64_t)1 << 62)

struct nursery_fold {
    uint64_t key;    // 0, or NURSERY_FOLD_USED | slot << 32 | size, and NURSERY_FOLD_SENDING
    uint64_t counts; // temporary << 32 | pairs
};

struct nursery_tables {
    struct nursery_fold folds[NURSERY_FOLDS];
    struct nursery_set sets[NURSERY_SETS_MAX]; // mask + 1 of them in use
};
#define NURSERY_BYTES (sizeof(struct nursery_tables))

// What the thread's sum was when it sent a TICK.
struct nursery_moment {
    uint64_t pos; // of the TICK
    int64_t sum_bytes;
};

// "Sum" is what the thread has allocated less what it has freed, as far as it knows sizes.
struct nursery {
    _Atomic uint64_t held_bytes;    // of HELD blocks; R sets it to 0 when it takes them
    _Atomic uint64_t highest_bytes; // highest held_bytes since sent_bytes last changed
    uint64_t limit_bytes;           // of held_bytes: ceiling_bytes - sent_bytes, or 0
    uint32_t mask;                  // sets in use - 1
    uint32_t is_holding;            // new blocks may be held
    uint64_t last_allocated;        // address, if the thread's latest event allocated; else 0
    uint64_t mark;                  // see above
    uint64_t hold_count;            // blocks held since the last TICK
    _Atomic uint64_t since_ms;      // time of the last TICK; all that is held is younger

    _Alignas(64) _Atomic uint32_t owner;     // enum nursery_owner
    uint32_t tick_count;                     // of `history`, and for adapting
    uint32_t evicted_count;                  // blocks that others displaced since the last TICK
    uint32_t off_ticks;                      // ticks left until blocks are held again
    uint64_t late_count;                     // of the blocks held, those that were sent after all
    uint64_t direct_count;                   // blocks that were not held
    uint64_t window_count;                   // blocks since adapting last
    uint64_t window_late;                    // those of them that were sent
    uint64_t taken_bytes;                    // R: HELD blocks that it took; T counts them as sent
    int64_t sent_bytes;                      // the sum without what is held
    int64_t ceiling_bytes;                   // while the sum is at most this, no maximum is new
    int64_t start_bytes;                     // the sum at the last TICK
    int64_t peak_bytes;                      // highest sum since then, but for the latest stretch
    _Atomic uint64_t held_peak_bytes;        // highest held_bytes, likewise
    uint64_t touched[NURSERY_SETS_MAX / 64]; // bit set: a block of this set may be HELD
    uint64_t folds_used[NURSERY_FOLDS / 64]; // bit set: the fold may have a key
    struct nursery_moment history[NURSERY_HISTORY];
};
