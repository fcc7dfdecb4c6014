// SPDX-License-Identifier: MIT
// lane_heap: which of the unread lanes has the earliest event.
//
// A binary heap of lanes by the stamp of their next event: the first lane is known at once, and
// after it has been read it finds its new place in log2(n) steps. With hundreds of threads a search
// through all lanes at each change of the thread would take most of the recorder's time.
//
// Events without stamps have stamp 0. Among equal stamps, lanes of an earlier image of a process
// come first. The heap owns nothing and follows no pointer: who adds a lane says what its stamp is.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "session/layout.h"

struct lane_turn {
    uint64_t stamp;  // of the lane's next event
    uint32_t lane;   // its index in the session
    bool is_earlier; // its process has executed another program since
};

struct lane_heap {
    uint32_t count;
    struct lane_turn turns[SESSION_MAX_LANES]; // none precedes the one at (its index - 1) / 2
};

void lane_heap_clear(struct lane_heap *heap);

// Add a lane; there are at most SESSION_MAX_LANES.
void lane_heap_add(struct lane_heap *heap, struct lane_turn turn);

// Give the first lane another stamp. The heap is not empty.
void lane_heap_move_first(struct lane_heap *heap, uint64_t stamp);

// Remove the first lane. The heap is not empty.
void lane_heap_drop_first(struct lane_heap *heap);

// Return the earliest stamp of all lanes but the first; UINT64_MAX: there is no other.
uint64_t lane_heap_second_stamp(const struct lane_heap *heap);
