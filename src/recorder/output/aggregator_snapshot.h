// SPDX-License-Identifier: MIT
// aggregator_snapshot: the aggregator as a recording, at one moment.
//
// A snapshot borrows the large tables (modules, frames, nodes, rows, threads, strings) from the
// aggregator, and makes and owns the small ones. The history of rows, which is large, too, is not
// in `recording`; `history` makes it while it is written. So a snapshot costs little memory, and is
// valid only until the aggregator changes.
// Context: H, the recorder's main thread.
#pragma once

#include <stdint.h>

#include "aggregate/aggregator.h"
#include "aggregate/block_list.h"
#include "aggregate/totals/row_history.h"
#include "base/err.h"
#include "host/containers/vec.h"
#include "recorder/memory/memory_snapshots.h"
#include "recorder/processes/unrecorded_list.h"
#include "recorder/samples/proc_sampler.h"
#include "recording/format/tables.h"
#include "session/layout.h"

DEFINE_VEC(rec_process_vec, struct rec_process);
DEFINE_VEC(rec_slice_vec, struct rec_slice);
DEFINE_VEC(rec_counter_vec, struct rec_counter);

// Facts of a recording that the aggregator does not have.
struct aggregator_snapshot_facts {
    enum rec_state state;
    uint32_t pid;        // of the program that was started
    int32_t exit_status; // wait status, -1 while it runs
    uint32_t max_frames;
    uint64_t start_unix_ns;
    uint64_t runtime_ms; // the run lasts at least until the latest event, too
    uint64_t checkpoint_count;
    uint64_t checkpoint_interval_ms;
    uint64_t events;
    const char *tool_version;
    const char *program; // path of the executable
    char *const *argv;   // its command line, ended by NULL
    uint64_t counters[SESSION_COUNTER_COUNT];
    struct block_list *blocks; // NULL: lists none. The live blocks are added to it
    struct rec_mark *marks;    // borrowed
    size_t mark_count;
    const struct rec_unrecorded *unrecorded; // copied
    size_t unrecorded_count;
    const char *hidden; // says which allocators without names were found, a sentence in each line
    uint64_t hidden_count;
    const char *unread; // says what of processes could not be read
    uint64_t unread_count;
    uint64_t slow_count; // processes that did not let themselves be read in time
    const char *omitted; // says why cairn did not attach to some processes
    uint64_t omitted_count;
    struct rec_hook *hooks; // borrowed
    size_t hook_count;
    uint64_t oom_limit_bytes;  // the kernel killed a process for lack of memory; 0: it did not
    uint64_t lost_profiles;    // which the collector of --push did not get
    uint64_t reduced_profiles; // in which stacks are added up for its limits
    const char *unpatched;     // says which functions of attached processes could not be patched
    uint64_t unpatched_count;  // 0: none
    uint64_t unjoined_count;   // processes that still ran at the end and had not joined
};

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

// Borrow the strings again, after some were added (names of functions).
enum err aggregator_snapshot_lend_strings(struct aggregator_snapshot *snapshot,
                                          struct aggregator *aggregator) MUST_USE;

void aggregator_snapshot_release(struct aggregator_snapshot *snapshot);
