// SPDX-License-Identifier: MIT
// exit_wait: makes an exiting process wait for the recorder's last memory snapshot of it.
//
// /proc shows a memory map only while its process exists, and users ask for the memory at the end.
// So the recorder may ask a process (process_slot.exit_wait) to wait for a moment when it begins to
// exit:
//
//   NO --R--> WANTED --P, exiting--> WAITING --R has looked--> DONE
//                                       `--no answer in time--> the process continues
//
// R asks only processes that run without a seccomp filter, because a filter might forbid the wait.
// R answers within milliseconds if it gets a processor. The wait ends as well when R is dead
// (recorder_liveness.h), and after EXIT_WAIT_WAIT_MS in any case; NOTE_exit_timeout counts both.
// Context: T, in the exiting thread; errno kept.
#pragma once

#include "session/layout.h"

#define EXIT_WAIT_WAIT_MS 3000u
#define EXIT_WAIT_NAP_MS  10u

// Wait. Returns at once if R did not ask.
void exit_wait_await(struct session_header *session, struct process_slot *slot);
