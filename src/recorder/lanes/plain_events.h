// SPDX-License-Identifier: MIT
// plain_events: counts runs of allocations and frees faster than aggregator_allocate and
// aggregator_free, with the same result.
//
// Most lanes consist of them. What only stamps, sampling, observers and pending frees need is
// checked once for a run instead of at each event, and the sums stay in registers.
// Context: H, one thread.
// Failure: as of aggregator_allocate.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregate/aggregator.h"
#include "base/err.h"

// Records of a lane; those before `at` have been counted.
struct plain_words {
    const uint64_t *words;
    size_t len;
    size_t at;
    uint64_t events; // counted
};

// Return whether events of the thread are plain at present. Only other events than plain ones, and
// a tick, change that.
bool plain_events_are(const struct aggregator *aggregator, const struct aggregator_thread *thread);

// Count the ALLOC and FREE records from words->at on. Stop at the first one that is anything else,
// that has an unknown stack or address, or is incomplete. `rows`: by stack slot; REC_NONE: unknown.
// plain_events_are is true.
enum err plain_events_count(struct aggregator *aggregator,
                            struct aggregator_thread *thread,
                            const struct u32_vec *rows,
                            struct plain_words *words) MUST_USE;
