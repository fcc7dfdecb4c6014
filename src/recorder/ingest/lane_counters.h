// SPDX-License-Identifier: MIT
// lane_counters: what a lane's thread counts instead of sending it, taken into the aggregator.
//
// What it left out for want of room (target/producer/sampler.h), and what it missed while it took
// us for dead (target/preload/process/missed_events.h). Trust: none, see claimed_counter.h.
// Context: H, the recorder's main thread.
#pragma once

#include "recorder/ingest/lane_reader.h"

// Tells the aggregator what has been counted since, at clock_ms of the session. ERR_CORRUPT: so
// much is not possible.
enum err lane_counters_take(struct lane_reader *reader,
                            struct aggregator *aggregator,
                            uint64_t clock_ms) MUST_USE;
