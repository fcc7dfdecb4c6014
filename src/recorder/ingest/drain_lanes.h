// SPDX-License-Identifier: MIT
// drain_lanes: the lanes that the drain reads, from their claim to their end. Only the drain uses
// it.
//
// It also names forked children after their parents, in any reading order. A forked child sends no
// texts of its own; its parent's apply. These are at the start of a lane of the parent, which may
// still be unread when the child is found. The child's frames need the name of its executable. So
// before a lane of such a child is read, the lanes of its parent are searched for the name, without
// counting anything.
// Context: H, the recorder's main thread.
#pragma once

#include "recorder/ingest/drain.h"

enum {
    DRAIN_ANY_SLOT = SESSION_MAX_PROCESSES,
};

// Begin the new lanes that are in use, of one slot or of all (DRAIN_ANY_SLOT).
enum err drain_lanes_find(struct drain *drain, uint32_t slot, uint64_t clock_ms) MUST_USE;

// Name the forked processes without names, if their parents have one.
enum err drain_lanes_name_children(struct drain *drain, uint64_t clock_ms) MUST_USE;

// Recycle lane active[i].
enum err drain_lanes_end(struct drain *drain, uint32_t i) MUST_USE;

// Count all that the lanes of `slot` hold and recycle them.
enum err drain_lanes_end_image(struct drain *drain, uint32_t slot, uint64_t clock_ms) MUST_USE;

// Free what is known of the lanes.
void drain_lanes_release(struct drain *drain);
