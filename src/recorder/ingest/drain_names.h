// SPDX-License-Identifier: MIT
// drain_names: names forked children after their parents, in any reading order.
//
// A forked child sends no texts of its own; its parent's apply. These are at the start of a lane of
// the parent, which may still be unread when the child is found. The child's frames need the name
// of its executable. So before a lane of such a child is read, the lanes of its parent are searched
// for the name, without counting anything.
// Context: H, the recorder's main thread. Only drain.c uses it.
#pragma once

#include "recorder/ingest/drain.h"

// Name the forked processes without names, if their parents have one.
enum err drain_names_learn(struct drain *drain, uint64_t clock_ms) MUST_USE;

// Name the process in one slot in the same way.
enum err drain_names_learn_of(struct drain *drain, uint32_t slot, uint64_t clock_ms) MUST_USE;

// Begin the new lanes of `slot` that are in use. In drain.c.
enum err drain_find_lanes(struct drain *drain, uint32_t slot, uint64_t clock_ms) MUST_USE;
