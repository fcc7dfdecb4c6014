// SPDX-License-Identifier: MIT
// left_out: blocks of one process that live and were not recorded, as far as there is room.
//
//   left_out_add()     a block is not recorded; false: another one was forgotten for it
//   left_out_take()    a block is freed: true if it is known that it was not recorded
//
// So the frees of most such blocks need not be sent. What is forgotten for want of room, or because
// two threads meet in one line, is sent, and the recorder finds no block there: the table saves
// work, nothing hangs on its being complete. But it must never hold a block that is recorded.
// An address enters after its block was allocated and leaves before it is freed, and whoever
// records a block takes its address out first; so threads that hand a block to each other
// see each other's changes, and all loads and stores are relaxed.
//
//   address -> line (64 bytes) of LEFT_OUT_WAYS addresses, in no order; a full line forgets one
//
// Memory: LEFT_OUT_BYTES, as far as it is touched. Context: T, any thread; async-signal-safe.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/hash.h"

#define LEFT_OUT_WAYS  8u
#define LEFT_OUT_LINES (1u << 16)

struct left_out_line {
    _Alignas(64) _Atomic uint64_t addresses[LEFT_OUT_WAYS]; // 0: none
};

struct left_out {
    struct left_out_line lines[LEFT_OUT_LINES];
};
#define LEFT_OUT_BYTES sizeof(struct left_out)

ALWAYS_INLINE struct left_out_line *left_out_line_of(struct left_out *set, uint64_t address)
{
    return set->lines + hash_mix(address) % LEFT_OUT_LINES;
}

// `address` is not 0. `random` chooses what a full line forgets.
static inline bool left_out_add(struct left_out *set, uint64_t address, uint64_t random)
{
    struct left_out_line *line = left_out_line_of(set, address);
    uint32_t place = (uint32_t)random % LEFT_OUT_WAYS;
    bool has_room = false;
    for (uint32_t i = 0; i < LEFT_OUT_WAYS; i++) {
        if (atomic_load_explicit(line->addresses + i, memory_order_relaxed) == 0) {
            place = i;
            has_room = true;
            break;
        }
    }
    atomic_store_explicit(line->addresses + place, address, memory_order_relaxed);
    return has_room;
}

// Whether `address` was there; now it is not.
static inline bool left_out_take(struct left_out *set, uint64_t address)
{
    struct left_out_line *line = left_out_line_of(set, address);
    bool was_there = false;
    for (uint32_t i = 0; i < LEFT_OUT_WAYS; i++) {
        if (atomic_load_explicit(line->addresses + i, memory_order_relaxed) == address) {
            atomic_store_explicit(line->addresses + i, 0, memory_order_relaxed);
            was_there = true;
        }
    }
    return was_there;
}
