// SPDX-License-Identifier: MIT
// observer: who is told of each event of a block, beside the sums: nobody in most recordings.
//
// The aggregator tells its observers in the order in which they were added, after its sums have
// changed. An observer that fails ends the recording, as the aggregator's own failure does.
//
//   aggregator --observed_event--> block_list (--blocks)
//                        --> event_log (--events)
//                        --> peak_scopes (cairn_peak_begin)
//
// Context: H, the recorder's main thread.
#pragma once

#include <stdint.h>

#include "aggregate/live_blocks/live_map.h"
#include "base/err.h"
#include "recording/format/tables.h"

// An event as the event log has it, and what else observers need of it.
struct observed_event {
    struct rec_event event;         // a free's thread is the one that frees
    const struct live_block *block; // of an allocation or a free; else NULL
    const struct live_map *live;    // of a process that ends; else NULL
    uint64_t bytes;                 // of the block and those that it stands for
    uint32_t owner;                 // of a free: the thread that allocated the block
    uint64_t peak_number;           // how many peaks there have been (row_table.h)
    uint64_t peak_before;           // of an allocation: how many before it
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

// At most OBSERVERS_MAX; nothing if `context` observes already.
void observer_add(struct observer_list *list, struct observer observer);

// Nothing if it does not observe.
void observer_remove(struct observer_list *list, const void *context);

enum err observers_tell(const struct observer_list *list, const struct observed_event *what)
    MUST_USE;
