// SPDX-License-Identifier: MIT
// retention: which recordings of a store a policy keeps.
//
//   7d,30d/1d,365d/7d    up to 7 days all, up to 30 days one a day, up to a year one in 7 days, and
//                        none that is older
//
// The age of a recording is the time since its end, so the last state of a service that has run for
// months is young. One of a period is the last of its service, version and host in that period of
// Unix time. Recordings whose memory ran out are kept up to the last age. A second run of the
// same policy at the same time removes nothing. Context: H; pure: the caller has the time.
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "store/store_table.h"

enum {
    RETENTION_STEPS_MAX = 8,
};

struct retention_policy {
    struct retention_step {
        int64_t age_s;    // of younger recordings
        int64_t period_s; // one is kept in each; 0: all are kept
    } steps[RETENTION_STEPS_MAX];
    size_t count;
};

// Append the ids of the recordings that the policy does not keep at `now_s`. `ages` is the answer
// of query_ages. ERR_NO_MEMORY.
enum err retention_select(const struct retention_policy *policy,
                          const struct store_table *ages,
                          int64_t now_s,
                          struct u64_vec *out) MUST_USE;
