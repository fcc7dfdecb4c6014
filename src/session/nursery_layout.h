// SPDX-License-Identifier: MIT
// nursery_layout: the part of a lane that holds events that its thread has not sent yet
// (nursery.h).
//
//   struct nursery          head, in the lane's header
//   struct nursery_tables   counters: counts of pairs; blocks, each at the place of its address
//
// The thread T writes all of it. The recorder R reads it when the thread has ended. From an idle
// thread R takes it under `owner`, and then writes too. T may be killed between any two of its
// stores, and nothing may be lost or counted twice then. So each change that needs two stores is
// written in three steps; `mark` shows whether the second one was done:
//
//   a counting  mark = sums before; block COALESCING;        sums = new;        block VACANT
//   a sending   mark = ring position behind the record;
//               block SENDING or NURSERY_COUNTER_SENDING;    record published;  block SENT, key 0
//   a leaving   leaving = address and freed_count;           freed_count + 1;  a counting, sending
//
// A new high-water mark needs no such steps: a mark that is shown twice, or one that was just
// passed, is not a new maximum.
//
// Trust: R treats all of it as hostile.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

// Powers of two, and multiples of 64.
#define NURSERY_BLOCKS   1024u
#define NURSERY_COUNTERS 512u

#define NURSERY_HISTORY   32u   // ticks
#define NURSERY_USES      2048u // stack slots are distinguished modulo this
#define NURSERY_FREED_MAX 64u   // pairs of a high-water mark

enum nursery_owner {
    NURSERY_FREE = 0,
    NURSERY_OF_THREAD = 1,
    NURSERY_OF_RECORDER = 2,
};

enum nursery_block_state {
    NURSERY_HELD = 0, // so the place of a held block is the address itself
    NURSERY_SENT = 1, // kept so that the size is known when the block is freed
    NURSERY_COALESCING = 2,
    NURSERY_SENDING = 3,
};

#define NURSERY_STATE_SHIFT  56u // addresses have fewer bits
#define NURSERY_ADDRESS_MASK (((uint64_t)1 << NURSERY_STATE_SHIFT) - 1)
#define NURSERY_SLOT_MASK    ((1u << 24) - 1)

// The kind of a block: temporary 1 (set when it is freed) | bucket of its size 7 (at most 1 MiB, so
// it is below 128) | slot 24 | stamp 11 | size 21. The kind of a SENT block: only the size, in 32
// bits. Stamps show whether a block was allocated before or after a high-water mark (nursery.h).
struct nursery_block {
    uint64_t place; // 0: vacant; or its address | enum nursery_block_state << NURSERY_STATE_SHIFT
    uint64_t kind;
};

#define NURSERY_KIND_TEMPORARY_SHIFT 63u
#define NURSERY_KIND_BUCKET_SHIFT    56u
#define NURSERY_KIND_SLOT_SHIFT      32u
#define NURSERY_COUNTER_SENDING      ((uint64_t)1 << 62)
#define NURSERY_STAMP                (1u << 21) // one step of the stamp in a kind
#define NURSERY_STAMP_MAX            (0u - NURSERY_STAMP)
#define NURSERY_NO_HIGH_WATER        (NURSERY_STAMP - 1) // below any stamp

#define NURSERY_LEAVING_SHIFT 56u // of freed_count

// Counts pairs whose kinds differ only in size. Both sums are in one word, which one store changes.
struct nursery_counter {
    uint64_t key;  // 0: unused; or kind >> NURSERY_KIND_SLOT_SHIFT, and NURSERY_COUNTER_SENDING
    uint64_t sums; // bytes 40 | pairs WIRE_PAIRS_BITS
};

static inline uint32_t nursery_slot(uint64_t kind)
{
    return (uint32_t)(kind >> NURSERY_KIND_SLOT_SHIFT) & NURSERY_SLOT_MASK;
}

// Return the size of a block that is not SENT.
static inline uint32_t nursery_size(uint64_t kind)
{
    return (uint32_t)kind & (NURSERY_STAMP - 1);
}

// Return the limit that includes all blocks of the stamp of `kind`.
static inline uint32_t nursery_stamp_limit(uint64_t kind)
{
    return (uint32_t)kind | (NURSERY_STAMP - 1);
}

// Whether a block of that kind was allocated up to `limit`.
static inline bool nursery_is_within(uint64_t kind, uint32_t limit)
{
    return (uint32_t)kind <= limit;
}

static inline bool nursery_is_temporary(uint64_t kind)
{
    return kind >> NURSERY_KIND_TEMPORARY_SHIFT != 0;
}

// Return the key of the counter of blocks of that kind. Never 0, because no block is empty.
static inline uint64_t nursery_counter_key(uint64_t kind)
{
    return kind >> NURSERY_KIND_SLOT_SHIFT;
}

// Return the kind of all pairs that a counter counts, without the size. NURSERY_COUNTER_SENDING is
// shifted out.
static inline uint64_t nursery_counter_kind(const struct nursery_counter *counter)
{
    return counter->key << NURSERY_KIND_SLOT_SHIFT;
}

struct nursery_tables {
    struct nursery_counter counters[NURSERY_COUNTERS];
    uint64_t freed[NURSERY_FREED_MAX]; // freed_count of them, in the format of HIGH_WATER
    struct nursery_block blocks[NURSERY_BLOCKS];
    uint64_t since[NURSERY_BLOCKS]; // freed_table's stamp for a HELD block, if is_ordered
};
#define NURSERY_BYTES (sizeof(struct nursery_tables))

// Whether holding pays: what was sent for the blocks of the last ticks. Only T uses it.
struct nursery_trade {
    uint32_t off_ticks;   // ticks left until blocks are held again
    uint32_t trial_ticks; // ticks left until holding is judged
    uint32_t ticks;       // since holding was judged last
    uint64_t blocks;      // allocated in these ticks
    uint64_t records;     // sent for them
};

// The thread's sum when it sent a TICK.
struct nursery_moment {
    uint64_t pos; // of the TICK
    int64_t sum_bytes;
};

// "Sum" means the bytes that the thread has allocated less those it has freed, with the sizes that
// it knows: ceiling_bytes - room_bytes. If is_ordered, room_bytes is the rest of budget_bytes, and
// NURSERY_NOTHING_SENT until a block was sent in this tick.
#define NURSERY_NOTHING_SENT (-1)
struct nursery {
    _Atomic uint64_t budget_bytes; // upper limit of held bytes in this tick, if is_ordered
    _Atomic uint32_t budget_count; // how often the budget was taken, counted after that
    _Atomic uint64_t held_bytes;   // of HELD blocks, which are never empty; R sets it to 0
    int64_t room_bytes;            // a block that is not larger may be held
    uint16_t is_holding;           // new blocks may be held
    uint16_t epoch;                // of `uses`, 1 to 255; changes when all has been sent
    uint32_t size_max;             // of a block that may be held
    uint64_t last_allocated;       // address, if the thread's latest event allocated; else 0
    uint64_t mark;                 // see the module comment
    uint64_t hold_count;           // blocks held since the last TICK
    uint32_t stamp;                // of new blocks
    // Limit of the blocks that existed at the high-water mark; or NURSERY_NO_HIGH_WATER.
    uint32_t high_water_limit;
    uint32_t freed_count; // how many of those blocks are counted as pairs
    uint32_t is_ordered;  // lane_producer.is_ordered: `since` is valid, and no block is SENT

    _Alignas(64) _Atomic uint64_t since_ms; // time of the last TICK; all held blocks are younger
    _Atomic uint32_t owner;                 // enum nursery_owner
    uint32_t tick_count;                    // of `history`
    uint64_t leaving;      // see the module comment: address, freed_count << NURSERY_LEAVING_SHIFT
    int64_t ceiling_bytes; // while the sum does not exceed this, no maximum is new
    struct nursery_trade trade;
    uint64_t touched[NURSERY_BLOCKS / 64];         // bit set: the block may be HELD
    uint64_t counters_used[NURSERY_COUNTERS / 64]; // bit set: the counter may have a key
    struct nursery_moment history[NURSERY_HISTORY];
    uint8_t uses[NURSERY_USES]; // `epoch`: a held block or counter may use a stack of such a slot
};

// Raise the ceiling at least to the sum.
static inline void nursery_lift_ceiling(struct nursery *n)
{
    const int64_t lift = n->room_bytes < 0 ? -n->room_bytes : 0;
    n->ceiling_bytes += lift;
    n->room_bytes += lift;
}

ALWAYS_INLINE uint64_t nursery_relaxed(const _Atomic uint64_t *word)
{
    // Relaxed: our own word, or compared with nothing else.
    return atomic_load_explicit(word, memory_order_relaxed);
}

ALWAYS_INLINE bool nursery_is_held(const struct nursery_block *block)
{
    return block->place - 1 < NURSERY_ADDRESS_MASK;
}

ALWAYS_INLINE uint64_t nursery_place(uint64_t address, enum nursery_block_state state)
{
    return address | (uint64_t)state << NURSERY_STATE_SHIFT;
}
