// SPDX-License-Identifier: MIT
// missed_events: counts what passes through the hooks after the recorder was found dead.
//
// Perhaps it only stood still (SIGSTOP, a machine that swaps) and goes on later: then the recording
// says how much it lacks. Each thread counts in its lane, by a load and a store; one that has no
// lane, since it began later or is of a forked child, in the session's own counters.
//
// Context: T, any thread, the guard not held or held. No system call, errno kept.
#pragma once

#include "target/preload/process/deferred.h"

// An event of this kind was not recorded. Does nothing unless the session was abandoned.
void missed_events_count(enum event_kind kind);
