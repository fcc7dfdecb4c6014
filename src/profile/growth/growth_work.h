// SPDX-License-Identifier: MIT
// growth_work: the history of a process without the long times in which it did nothing.
//
// A leak in requests does not grow without requests. So growth is measured in the time in which the
// process worked: that it allocated anywhere. A time is idle if it is a twentieth of the process's
// life, if the process allocated there at less than a twentieth of its mean rate, and if the stacks
// in question would hardly have allocated in it at their usual share of all allocations.
// Context: H; pure.
#pragma once

#include <stddef.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "profile/growth/growth_history.h"

// A zeroed struct is valid for working_time_release.
struct working_time {
    struct growth_history history; // with the arrays below
    struct u64_vec live_bytes;     // owned
    struct u64_vec birth_bytes;    // owned
    struct u64_vec slices;         // owned; of the whole history, ascending
    size_t idle_slices;            // left out
};

// If there are no idle times, or little time remains without them, idle_slices is 0.
enum err working_time_find(const struct growth_history *h, struct working_time *out) MUST_USE;
void working_time_release(struct working_time *time);
