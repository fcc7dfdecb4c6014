// SPDX-License-Identifier: MIT
// drain_process: follows the process slots of a session. Only drain.c uses it.
//
// A pidfd watches each process in a slot; without a pidfd kill(2) tests it. Slots are checked where
// possible: a pid that does not exist is a dead process. A process of another pid namespace is
// looked up under its pid in ours (pid_lookup.h).
// Context: H, the recorder's main thread.
#pragma once

#include "recorder/ingest/drain.h"

// Begin all processes in new, filled slots, in the order in which they joined. End the earlier
// image of a process that executed another program.
enum err drain_process_begin_new(struct drain *drain, uint64_t clock_ms) MUST_USE;

// Declare dead the processes that were found dead before clock_ms was read. All that they and
// others beside them did happened before.
void drain_process_date_dead(struct drain *drain, uint64_t clock_ms);

// End the dead processes whose lanes are all recycled, and free their slots.
enum err drain_process_end_dead(struct drain *drain) MUST_USE;
