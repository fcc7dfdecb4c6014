// SPDX-License-Identifier: MIT
// lane_counters: takes the counters of a lane's thread into the aggregator.
//
// The thread counts there what its book lacks: blocks that it did not choose
// (target/producer/byte_sampler.h), frees of blocks without a word, and events while it takes the
// recorder for dead (target/preload/process/missed_events.h). Its highest sampling level is taken,
// too.
// Trust: none, see claimed_counter.h.
// Context: H, the recorder's main thread.
#pragma once

#include "recorder/lanes/lane_reader.h"

// Add what has been counted since the previous call to the aggregator. clock_ms: of the session.
// ERR_CORRUPT: a counter has an impossible value.
enum err lane_counters_take(struct lane_reader *reader,
                            struct aggregator *aggregator,
                            uint64_t clock_ms) MUST_USE;
