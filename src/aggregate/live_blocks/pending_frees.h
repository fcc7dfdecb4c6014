// SPDX-License-Identifier: MIT
// pending_frees: frees of one process whose allocations have not been read yet.
//
// If the order of threads had to be guessed (drain_limit.h), a free may be read before the
// allocation. It waits here for an earlier allocation of its address. A free that waits longer than
// PENDING_TICKS concerns a block that was never recorded: inherited over fork, or older than
// the recording.
// Memory: bounded by PENDING_MAX; beyond it the oldest free is given up early. A zeroed object is
// empty and valid.
// Context: H, one thread.
// Failure: ERR_NO_MEMORY.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "host/containers/map_u64.h"
#include "host/containers/vec.h"

#define PENDING_TICKS 20u
#define PENDING_MAX   (1u << 17)

struct pending_free {
    uint64_t address;
    uint64_t tick;
    uint64_t stamp; // time of the free (stamp.h); 0: unknown, any allocation matches
    uint32_t next;  // number of the next free of this address, or PENDING_NONE
    bool is_taken;
};

DEFINE_VEC(pending_free_vec, struct pending_free);

struct pending_frees {
    struct pending_free_vec queue; // in order of arrival
    size_t first;                  // items before it are dead
    uint32_t first_number;         // number of queue.items[first]; numbers wrap
    struct map_u64 by_address;     // address -> number of its oldest pending free
    uint64_t count;
};

void pending_frees_release(struct pending_frees *w);

// Add a free. `*expired` grows by the number of frees that were given up to make room.
enum err pending_frees_add(struct pending_frees *w,
                           uint64_t address,
                           uint64_t tick,
                           uint64_t stamp,
                           uint64_t *expired) MUST_USE;

// Match an allocation at `address` that happened at `stamp`, or before all stamps (0). Return true
// and remove the free if one waits: the first one after the allocation.
bool pending_frees_take(struct pending_frees *w, uint64_t address, uint64_t stamp);

// Give up the frees that have waited since before now_tick - PENDING_TICKS; all for UINT64_MAX.
// Return their number.
uint64_t pending_frees_expire(struct pending_frees *w, uint64_t now_tick);
