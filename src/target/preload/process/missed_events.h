// SPDX-License-Identifier: MIT
// missed_events: counts events that pass through the hooks after the recorder was found dead.
//
// The recorder may only have been stopped (SIGSTOP, a machine that swaps) and continue later: then
// the recording states how many events it lacks, and goes on (process.h). Each thread counts in its
// lane, by a load and a store. A thread without a lane, because it began later or is in a forked
// child, counts in the session's own counters.
//
// Context: T, any thread, the guard not held or held. No system call, errno kept.
#pragma once

#include "target/preload/process/deferred.h"

// Count an unrecorded event of this kind. Does nothing unless the session was abandoned.
void missed_events_count(enum event_kind kind);
