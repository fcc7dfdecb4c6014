// SPDX-License-Identifier: MIT
// questions: answers what threads asked (target/preload/process/stats_query.h).
//
// A lane's latest question waits until a whole pass after the one that read it, and until all lanes
// have been counted up to its tick: what happened before it was asked is then in the aggregator,
// whoever did it. Context: H, the recorder's main thread; part of the drain.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct drain;

// The end of a pass: everything up to complete_tick is in the aggregator. Says whether some wait
// on. ERR_NO_MEMORY: the aggregator is full.
enum err questions_answer(struct drain *drain, uint64_t complete_tick, bool *is_waiting) MUST_USE;
