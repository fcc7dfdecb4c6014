// SPDX-License-Identifier: MIT
// nursery_reader: turns the unsent contents of a thread's nursery into the records that the thread
// would have sent.
//
// There are two cases. The thread is dead, or will send no more: its nursery is read as it is, and
// the rules of nursery_layout.h resolve an operation that a kill interrupted. Or the thread is
// idle: its nursery is emptied under the nursery's lock on its behalf. A thread is idle if the
// clock has advanced since its last event, none of its hooks runs, and both have been so for a
// while: a hook that begins now sees the new time, and takes the lock before anything else.
//
// Trust: none. The nursery is copied once; the result is decoded and checked as a ring's records.
// Context: H, the recorder's main thread. Never waits.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "session/layout.h"

// What a lane may hold at present.
struct nursery_hold {
    uint64_t since_ms;   // start of its tick; UINT64_MAX: it holds nothing
    uint64_t held_bytes; // held before there were several threads
};
struct nursery_hold nursery_reader_hold(struct lane_header *lane);

// Whether the thread has been idle since before stable_ms, a time that was read a millisecond ago
// or more, and holds nothing: then it will hold nothing before it has taken another budget.
bool nursery_reader_is_empty(struct lane_header *lane, uint64_t stable_ms);

// Take the lock if the thread has been idle since before stable_ms. nursery_reader_take and
// nursery_reader_unlock must follow.
bool nursery_reader_lock(struct lane_header *lane, uint64_t stable_ms);
void nursery_reader_unlock(struct lane_header *lane);

// Append the contents of the nursery to `out`. `is_alive`: the thread continues, and the nursery is
// emptied. `scratch` has room for a copy. ERR_NO_MEMORY.
enum err nursery_reader_take(struct lane_header *lane,
                             bool is_alive,
                             struct nursery_tables *scratch,
                             struct u64_vec *out) MUST_USE;
