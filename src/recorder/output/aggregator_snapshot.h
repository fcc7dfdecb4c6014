// SPDX-License-Identifier: MIT
// aggregator_snapshot: the aggregator as a recording, at one moment.
//
// A snapshot borrows the large tables (modules, frames, nodes, rows, threads, strings) from the
// aggregator, and makes and owns the small ones. The history of rows, which is large, too, is not
// in `recording`; `history` makes it while it is written. So a snapshot costs little memory, and is
// valid only until the aggregator changes.
// Context: H, the recorder's main thread.
#pragma once

#include "aggregate/aggregator.h"
#include "aggregate/block_list.h"
#include "aggregate/totals/row_history.h"
#include "base/err.h"
#include "host/containers/vec.h"
#include "recorder/memory/memory_snapshots.h"
#include "recorder/output/snapshot_counters.h"
#include "recorder/processes/unrecorded_list.h"
#include "recorder/samples/proc_sampler.h"
#include "recording/format/tables.h"

DEFINE_VEC(rec_process_vec, struct rec_process);
DEFINE_VEC(rec_slice_vec, struct rec_slice);

// Zeroed is valid.
struct aggregator_snapshot {
    struct recording recording; // borrows from this object and from the aggregator
    struct rec_process_vec processes;
    struct row_history history;
    struct rec_slice_vec slices;
    struct rec_realloc_vec reallocs;
    struct rec_counter_vec counters;
    struct rec_block_vec blocks;
    struct rec_memory_snapshot_vec memory_snapshots;
    struct rss_tables rss_tables;
    struct rec_unrecorded_vec unrecorded;
    struct u64_vec string_offsets;
};

// Make the recording. `sampler` and `snapshots` may be NULL. Interns a few strings, commits the
// peak to the rows of the aggregator, and extends its slices until now; nothing else changes.
// ERR_NO_MEMORY, ERR_LIMIT.
enum err aggregator_snapshot_take(struct aggregator *aggregator,
                                  const struct proc_sampler *sampler,
                                  const struct memory_snapshots *snapshots,
                                  const struct aggregator_snapshot_facts *facts,
                                  struct aggregator_snapshot *out) MUST_USE;

// Return about how much processor time it takes to make a snapshot now and to write it.
uint64_t aggregator_snapshot_cost_ms(const struct aggregator *aggregator);

// Borrow the strings again, after some were added (names of functions).
enum err aggregator_snapshot_lend_strings(struct aggregator_snapshot *snapshot,
                                          struct aggregator *aggregator) MUST_USE;

void aggregator_snapshot_release(struct aggregator_snapshot *snapshot);
