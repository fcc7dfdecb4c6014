// SPDX-License-Identifier: MIT
// nursery_reader: what a lane's thread has not sent, as the records that it would have sent.
//
// Two occasions. The thread is gone, or will send no more: its nursery is read as it lies, and what
// was under way when it was killed is decided by the rules of nursery_layout.h. Or it stands still:
// its nursery is emptied under the nursery's lock, on its behalf. A thread stands still if the
// clock moved on since its last event, no hook of it is under way, and both have been so for a
// while: a hook that begins now sees the new time, and comes to the lock before anything else.
//
// Trust: none. The nursery is copied once; what comes out is decoded and checked as a ring's
// records. Context: H, the recorder's main thread. Never waits.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "session/layout.h"

// What a lane may hold at the moment.
struct nursery_hold {
    uint64_t since_ms;   // when its tick began; UINT64_MAX: it holds nothing
    uint64_t held_bytes; // of what was held before there were several threads
};
struct nursery_hold nursery_reader_hold(struct lane_header *lane);

// Takes the lock if the thread has stood still since before settled_ms, a time that was read a
// millisecond ago or more. To be followed by nursery_reader_take and nursery_reader_unlock.
bool nursery_reader_lock(struct lane_header *lane, uint64_t settled_ms);
void nursery_reader_unlock(struct lane_header *lane);

// Appends what the nursery holds to `out`. `is_alive`: the thread goes on, and finds it emptied.
// `scratch` is room for a copy. ERR_CORRUPT: it makes no sense. ERR_NO_MEMORY.
enum err nursery_reader_take(struct lane_header *lane,
                             bool is_alive,
                             struct nursery_tables *scratch,
                             struct u64_vec *out) MUST_USE;
