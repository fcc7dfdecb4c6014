// SPDX-License-Identifier: MIT
// summary: the totals of a selection, and the shares of processes, threads and modules.
//
// Unfiltered totals are the recording's own. They include what belongs to no row (unknown frees).
// With a filter, totals are sums over the selected rows. `peak_bytes` is then the selection's part
// of the global peak. The time and the error remain those of the global peak, but no bound is more
// than the selection allocated. Under a time range the peak is the range's own, at its own time
// (time_range.h). Context: H.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "profile/model/cost.h"
#include "profile/select/filter.h"

struct summary {
    struct costs costs;
    uint32_t unknown;          // bit n: enum cost n is unknown (selection.unknown)
    bool has_times;            // else all times are unknown
    uint64_t unknown_frees;    // of the whole recording
    uint64_t events;           // of the whole recording
    uint64_t peak_error_bytes; // the true peak is within peak_bytes +- this; see rec_totals
    uint64_t peak_below_bytes; // but is lower than peak_bytes by at most this
    // The error in the program's own order: peak_error_bytes without the blocks in flight of older
    // recordings.
    uint64_t peak_order_error_bytes;
    uint64_t peak_time_ms;
    uint64_t peak_rss_bytes;   // of the whole process tree; 0 if never sampled
    uint64_t peak_rss_at_most; // as rss_breakdown has it
    uint64_t runtime_ms;       // of the whole recording
    uint64_t counted_ms;       // of the selected part
    double allocations_per_s;  // in the selected part; 0 if it has no length
    uint64_t processes;        // with a filter: with a selected row
    uint64_t threads;          // the same; without a filter at least one for each process
    uint64_t stacks;           // distinct call stacks that allocated
};

// For each entry of the processes table, find the entry of the first program image of that process,
// which may be itself. An exec adds an entry. Processes are counted by their first entries.
enum err summary_beginnings(const struct recording *recording, struct u32_vec *out) MUST_USE;

// The bounds of the true peak: of the allocator's, and the upper one in the program's own order.
uint64_t summary_peak_at_least(const struct summary *summary);
uint64_t summary_peak_at_most(const struct summary *summary);
uint64_t summary_peak_order_at_most(const struct summary *summary);

// What the blocks in flight add to the upper bound: what the program's own order leaves out. Only
// older recordings have any.
uint64_t summary_peak_flight_bytes(const struct summary *summary);

// Whether `part_bytes` are at least a hundredth of the peak, and so worth a sentence.
bool summary_peak_has_share(const struct summary *summary, uint64_t part_bytes);

// Whether the peak may be lower or higher by a hundredth, and its bounds worth to be shown.
bool summary_has_wide_peak(const struct summary *summary, uint64_t at_least, uint64_t at_most);

// Whether the highest RSS may be higher by a hundredth: processes got shared pages while cairn
// looked at one after the other.
bool summary_has_wide_rss(const struct summary *summary);

enum err summary_build(const struct selection *selection, struct summary *out) MUST_USE;

// The share of one process, thread or module. A module's share is the allocations whose call site
// is in it.
struct group {
    uint32_t id; // index in the recording's table; REC_NONE: code outside any file
    struct costs costs;
};

DEFINE_VEC(group_vec, struct group);

enum group_by {
    GROUP_BY_PROCESS,
    GROUP_BY_THREAD,
    GROUP_BY_MODULE
};

// List the groups in the order of the recording's table: with a filter those that have a selected
// row, without one all. A last group for REC_NONE follows if it has rows. The groups add up to the
// selection.
enum err groups_build(const struct selection *selection, enum group_by by, struct group_vec *out)
    MUST_USE;
