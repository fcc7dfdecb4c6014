// SPDX-License-Identifier: MIT
// thread_share: what a thread of this process has had of the processors.
//
// On a busy machine a thread that could go on waits for a processor, as long as others use it. Who
// judges by the clock alone takes that for a thread that something else holds up. The kernel counts
// both: /proc/PID/task/TID/schedstat. A wait is counted when it ends, so a thread that can run now
// is said to.
// Context: H; any thread. Failure: no account, as without CONFIG_SCHED_INFO or /proc.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/compiler.h"

struct thread_share {
    uint64_t ran_ns;
    uint64_t queued_ns; // for a processor
    bool can_run;       // it runs, or waits for a processor
};

bool thread_share_read(pid_t thread_id, struct thread_share *out) MUST_USE;
