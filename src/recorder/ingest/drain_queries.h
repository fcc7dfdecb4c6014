// SPDX-License-Identifier: MIT
// drain_queries: answers the queries of threads (target/preload/process/stats_query.h).
//
// The latest query of a lane waits for a whole pass after the one that read it, and until all lanes
// have been counted up to the time at which it was read. The aggregator then has all events before
// the query, of any thread.
// Context: H, the recorder's main thread; part of the drain.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct drain;

// Answer queries at the end of a pass, of the first `lane_count` active lanes: the others have
// none. The aggregator has all events up to complete_tick. now_ms: drain_process_now_ms.
// *is_waiting: some queries still wait. ERR_NO_MEMORY: the aggregator is full.
enum err drain_queries_answer(struct drain *drain,
                              uint32_t lane_count,
                              uint64_t complete_tick,
                              uint64_t now_ms,
                              bool *is_waiting) MUST_USE;
