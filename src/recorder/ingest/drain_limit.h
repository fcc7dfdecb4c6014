// SPDX-License-Identifier: MIT
// drain_limit: the moment up to which a pass counts events. Only drain.c uses it.
//
// A process announces its exit: all earlier events are known. One that is announced for longer than
// drain_patience_ms() is given up, and NOTE_order_timeouts counts that.
// Context: H, the recorder's main thread.
#pragma once

#include "recorder/ingest/drain.h"

// Return the limit of the pass that begins at clock_ms. Call it before lanes are read.
uint64_t drain_limit_of_pass(struct drain *drain, uint64_t clock_ms) MUST_USE;

// Return whether this pass leaves events to later ones that precede the moment of its start.
static inline bool drain_limit_leaves_events(const struct drain *drain)
{
    return drain->pending_stamp < drain->alive_stamp;
}
