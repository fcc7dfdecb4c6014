// SPDX-License-Identifier: MIT
// pending_frees: frees of one process whose block has not been heard of yet.
//
// A thread that was alone may hold a block back (nursery.h) that another one, which came later, has
// freed by then. Such a free waits here for an allocation of its address that happened before it.
// What nobody asks for within WAITING_TICKS was no block of ours (inherited over fork, or from
// before the recording).
// Memory: bounded by WAITING_MAX; beyond it the oldest is given up early.
// A zeroed object is empty and valid. Context: H, one thread.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "host/containers/map_u64.h"
#include "host/containers/vec.h"

#define WAITING_TICKS 20u
#define WAITING_MAX   (1u << 17)

struct waiting_free {
    uint64_t address;
    uint64_t tick;
    uint64_t stamp; // when it happened (stamp.h); 0: unknown, then no allocation is older
    uint32_t next;  // number of the next one for this address, or WAITING_NONE
    bool is_taken;
};

DEFINE_VEC(waiting_free_vec, struct waiting_free);

struct pending_frees {
    struct waiting_free_vec queue; // in order of arrival
    size_t first;                  // those before it are gone
    uint32_t first_number;         // number of queue.items[first]; numbers wrap
    struct map_u64 by_address;     // address -> number of the oldest that waits
    uint64_t waiting_count;
};

void pending_frees_release(struct pending_frees *w);

// Adds one. `*expired` is increased by those that were given up to make room.
enum err pending_frees_add(struct pending_frees *w,
                           uint64_t address,
                           uint64_t tick,
                           uint64_t stamp,
                           uint64_t *expired) MUST_USE;

// An allocation at `address` was read that happened at `stamp`, or before all stamps (0). True if
// its free waited for it, which is then gone: the first one after that.
bool pending_frees_take(struct pending_frees *w, uint64_t address, uint64_t stamp);

// Gives up those that have waited since before now_tick - WAITING_TICKS; UINT64_MAX: all. Returns
// how many.
uint64_t pending_frees_expire(struct pending_frees *w, uint64_t now_tick);
