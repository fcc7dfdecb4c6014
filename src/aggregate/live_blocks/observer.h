// SPDX-License-Identifier: MIT
// observer: receives each event of a block. Most recordings have no observers.
//
// The aggregator calls its observers in the order in which they were added, after it has changed
// its sums. An observer that fails ends the recording, as a failure of the aggregator does.
//
//   aggregator --observed_event--> block_list (--blocks)
//                        --> peak_scopes (cairn_peak_begin)
//
// Context: H, the recorder's main thread.
#pragma once

#include <stdint.h>

#include "aggregate/live_blocks/live_map.h"
#include "base/err.h"
#include "recording/format/tables.h"

// An event, and further facts for observers.
struct observed_event {
    struct rec_event event;         // its thread is the allocating or the freeing one
    const struct live_block *block; // of an allocation or a free; else NULL
    const struct live_map *live;    // of a process that ends; else NULL
    uint64_t bytes;                 // of the block, times its sampling weight
    uint32_t owner;                 // of a free: the thread that allocated the block
    uint64_t peak_number;           // peaks so far (row_table.h)
    uint64_t peak_before;           // of an allocation: peaks before it
};

struct observer {
    void *context; // borrowed
    enum err (*observe)(void *context, const struct observed_event *what);
};

#define OBSERVERS_MAX 3u

struct observer_list {
    struct observer items[OBSERVERS_MAX];
    uint32_t count;
};

// Add an observer; there may be OBSERVERS_MAX. No effect if `context` observes already.
void observer_add(struct observer_list *list, struct observer observer);

// Remove an observer. No effect if `context` does not observe.
void observer_remove(struct observer_list *list, const void *context);

enum err observers_tell(const struct observer_list *list, const struct observed_event *what)
    MUST_USE;
