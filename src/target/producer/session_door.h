// SPDX-License-Identifier: MIT
// session_door: opens the session to processes of another network namespace.
//
// An abstract socket belongs to a network namespace, and the /proc path of the memfd is closed to
// other user and pid namespaces. A socket in the file system is open to every process that sees the
// file, but a killed recorder would leave it behind. So it is opened only when a process is about
// to execute a program that could not join otherwise:
//
//   CLOSED --P--> WANTED --R--> OPEN, door_path is the socket's
//                        `----> REFUSED
//
// Context: T, before an exec; raw system calls only, async-signal-safe, errno kept. It waits for
// the recorder until that is dead (recorder_liveness.h), and some seconds at most.
#pragma once

#include "session/layout.h"

// Return the path of the socket, borrowed from the session; NULL if there is none. `pid_namespace`:
// of the calling process.
const char *session_door(struct session_header *session, uint32_t pid_namespace);
