// SPDX-License-Identifier: MIT
// exit_wait: makes an exiting process wait for the recorder's last memory snapshot of it.
//
// /proc shows a memory map only while its process exists, and users ask for the memory at the end.
// So a process may be asked (process_slot.exit_wait) to wait for a moment when it begins to exit:
//
//   NO --P, joining, or R--> WANTED --P, exiting--> WAITING --R has looked--> DONE
//                                                      `--no answer in time--> it continues
//
// The images of the program that R has started or attached to ask themselves as they join, because
// they may have passed their exit before R sees that. One that does not know its pid namespace is
// asked by R. None is asked that runs under a seccomp filter, because a filter might forbid the
// wait. R answers within milliseconds if it gets a processor. The wait ends as well when R is dead
// (recorder_liveness.h), and after EXIT_WAIT_WAIT_MS in any case; NOTE_exit_timeout counts both.
// Context: T, in the exiting thread; errno kept.
#pragma once

#include "session/layout.h"

#define EXIT_WAIT_WAIT_MS 3000u
#define EXIT_WAIT_NAP_MS  10u

// Wait. Returns at once if it was not asked.
void exit_wait_await(struct session_header *session, struct process_slot *slot);
