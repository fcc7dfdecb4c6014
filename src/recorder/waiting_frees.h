// SPDX-License-Identifier: MIT
// waiting_frees: frees of one process whose block has not been heard of yet.
//
// Lanes are read one after the other, so a free may be read before the allocation that it belongs
// to, if another thread made it. Such a free waits here for an allocation of the same address that
// may have come first: one of another lane and of no later tick. What nobody asks for within
// WAITING_TICKS was no block of ours (inherited over fork, or from before the recording).
// At the end of its tick, and once more before it expires, each is shown to the book
// (waiting_frees_next): another thread's free may have taken "its" block, and left one that now has
// nobody to free it.
// Memory: bounded by WAITING_MAX; beyond it the oldest is given up early.
// A zeroed object is empty and valid. Context: H, one thread.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "host/map_u64.h"
#include "host/vec.h"

#define WAITING_TICKS 20u
#define WAITING_MAX   (1u << 17)

struct waiting_free {
    uint64_t address;
    uint64_t tick;
    uint32_t lane;
    uint32_t next; // number of the next one for this address, or WAITING_NONE
    bool is_taken;
};

DEFINE_VEC(waiting_free_vec, struct waiting_free);

struct waiting_frees {
    struct waiting_free_vec queue; // in order of arrival
    size_t first;                  // those before it are gone
    size_t shown;                  // those before it have been shown at the end of their tick
    size_t shown_again;            // those before it have been shown a second time
    uint32_t first_number;         // number of queue.items[first]; numbers wrap
    struct map_u64 by_address;     // address -> number of the oldest that waits
    uint64_t waiting_count;
};

void waiting_frees_release(struct waiting_frees *w);

// Adds one. `*expired` is increased by those that were given up to make room.
enum err waiting_frees_add(struct waiting_frees *w,
                           uint64_t address,
                           uint64_t tick,
                           uint32_t lane,
                           uint64_t *expired) MUST_USE;

// An allocation at `address` was read. True if a free waited for it, which is then gone.
bool waiting_frees_take(struct waiting_frees *w, uint64_t address, uint64_t tick, uint32_t lane);

// Shows those that still wait: each at the end of its tick (all but those of now_tick) and once
// more before it expires. NULL: no more for now. Valid until the next call for this object. If the
// caller knows its block, waiting_frees_settle takes it out. UINT64_MAX shows all of them.
const struct waiting_free *waiting_frees_next(struct waiting_frees *w, uint64_t now_tick);
void waiting_frees_settle(struct waiting_frees *w, const struct waiting_free *pending);

// Gives up those that have waited since before now_tick - WAITING_TICKS; UINT64_MAX: all. Returns
// how many.
uint64_t waiting_frees_expire(struct waiting_frees *w, uint64_t now_tick);
