// SPDX-License-Identifier: MIT
// exit_wait: an exiting process waits for the recorder's last look at its memory map.
//
// /proc shows a memory map only while its process is there, and what it held at the end is what
// users ask about. So the recorder may ask a process (process_slot.exit_wait) to wait when it
// begins to exit, for a moment:
//
//   NO --R--> WANTED --P, exiting--> WAITING --R has looked--> DONE
//                                       `--nobody came in time--> the process goes on
//
// R asks only processes that run without a seccomp filter, for one might forbid the wait.
// The wait has an end: EXIT_WAIT_WAIT_MS of the recorder's clock, or so many naps if that clock
// stands still. Context: T, in the exiting thread; errno kept.
#pragma once

#include "session/layout.h"

#define EXIT_WAIT_WAIT_MS 250u
#define EXIT_WAIT_NAP_MS  10u

// Returns at once if R did not ask.
void exit_wait_await(struct session_header *session, struct process_slot *slot);
