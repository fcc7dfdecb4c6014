// SPDX-License-Identifier: MIT
// drain_names: what forked children are called, whoever's records are read first.
//
// A forked child sends no texts of its own: it is what its parent is. The parent's texts are at the
// beginning of one of its lanes, which may well not have been read when the child is found; and the
// child's frames lie in an executable that has no other name. So before a lane of such a child is
// read, its parent's lanes are looked through for the name, without anything being counted.
// Context: H, the recorder's main thread. Only drain.c uses it.
#pragma once

#include "recorder/ingest/drain.h"

// Names the forked processes that have no name yet, as far as their parents tell.
enum err drain_names_learn(struct drain *drain, uint64_t clock_ms) MUST_USE;

// The same of the process in one slot.
enum err drain_names_learn_of(struct drain *drain, uint32_t slot, uint64_t clock_ms) MUST_USE;

// Begins the lanes of `slot` that are in use and new. In drain.c.
enum err drain_find_lanes(struct drain *drain, uint32_t slot, uint64_t clock_ms) MUST_USE;
