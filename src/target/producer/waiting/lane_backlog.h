// SPDX-License-Identifier: MIT
// lane_backlog: keeps threads that come and go from leaving more and more memory behind.
//
// A lane is recycled when the recorder has read it. Where threads end faster than it reads, each
// leaves a lane of up to LANE_STRIDE, which counts as memory of the program. So a thread whose
// first event finds more than LANES_UNREAD_MAX such lanes waits until the recorder has recycled
// some. The wait ends as well when the session has ended, when the recorder is dead
// (recorder_liveness.h), and after LANE_BACKLOG_WAIT_MS in any case.
//
// Context: T, without a lane; signal handlers may run during the wait. Raw system calls; errno is
// kept.
#pragma once

#include <stdint.h>

#include "session/layout.h"

#define LANE_BACKLOG_WAIT_MS 1000u

// Wait until a thread of a process in that pid namespace may claim a lane.
void lane_backlog_await(struct session_header *session, uint32_t pid_namespace);
