// SPDX-License-Identifier: MIT
// summary: the totals of a selection, and who shares in them: processes, threads, modules.
//
// Unfiltered totals are the recording's own, which also count what no row can (unknown frees). With
// a filter they are sums over the selected rows; then `peak_bytes` is the selection's part of the
// global peak, and time and error of the peak remain those of the global one; under a time range it
// is that of the range (time_range.h), at a moment of its own. Context: H.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "profile/model/cost.h"
#include "profile/select/filter.h"

struct summary {
    struct costs costs;
    uint64_t unknown_frees;    // of the whole recording
    uint64_t events;           // of the whole recording
    uint64_t peak_error_bytes; // the true peak lies within peak_bytes +- this; see rec_totals
    uint64_t peak_below_bytes; // and is lower than peak_bytes by no more than this
    uint64_t peak_time_ms;
    uint64_t peak_rss_bytes;  // of the whole process tree; 0 if it was never sampled
    uint64_t runtime_ms;      // of the whole recording
    uint64_t counted_ms;      // of the part of it that is counted
    double allocations_per_s; // in that part; 0 if it has no length
    uint64_t processes;       // with a filter: that have a selected row
    uint64_t threads;         // the same; without one each process has one at least
    uint64_t stacks;          // distinct call stacks that allocated
};

// For each image of a process the one in which it began, itself if it is that: execs, which come
// behind it, make new images. What is counted as a process is a beginning.
enum err summary_beginnings(const struct recording *recording, struct u32_vec *out) MUST_USE;

// The true peak lies between them.
uint64_t summary_peak_at_least(const struct summary *summary);
uint64_t summary_peak_at_most(const struct summary *summary);

enum err summary_build(const struct selection *selection, struct summary *out) MUST_USE;

// What one process, thread or module contributes. A module's are the allocations whose call site
// lies in it.
struct group {
    uint32_t id; // index in the recording's table; REC_NONE: code that belongs to no file
    struct costs costs;
};

DEFINE_VEC(group_vec, struct group);

enum group_by {
    GROUP_BY_PROCESS,
    GROUP_BY_THREAD,
    GROUP_BY_MODULE
};

// In the order of the recording's table: with a filter those that have a selected row, without one
// all, and in either case a last one for REC_NONE if it has rows. The sum over all groups is the
// selection.
enum err groups_build(const struct selection *selection, enum group_by by, struct group_vec *out)
    MUST_USE;
