// SPDX-License-Identifier: MIT
// snapshot_counters: facts of a recording that the aggregator lacks, and its losses and notes.
// Context: H, the recorder's main thread.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "aggregate/aggregator.h"
#include "aggregate/block_list.h"
#include "base/err.h"
#include "host/containers/vec.h"
#include "recording/format/tables.h"
#include "session/layout.h"

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

// Add one.
enum err snapshot_counters_add(struct rec_counter_vec *out,
                               struct aggregator *aggregator,
                               const char *name,
                               const char *text,
                               enum rec_counter_kind kind,
                               uint64_t value) MUST_USE;

// A counter that is there only if it is above 0.
struct rare_counter {
    const char *name;
    const char *text;
    enum rec_counter_kind kind;
    uint64_t value;
};

enum err snapshot_counters_add_rare(struct rec_counter_vec *out,
                                    struct aggregator *aggregator,
                                    const struct rare_counter *rare,
                                    size_t count) MUST_USE;

// Add all but those of listed blocks. ERR_NO_MEMORY, ERR_LIMIT.
enum err snapshot_counters_fill(struct rec_counter_vec *out,
                                struct aggregator *aggregator,
                                const struct aggregator_snapshot_facts *facts) MUST_USE;
