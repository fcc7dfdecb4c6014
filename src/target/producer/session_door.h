// SPDX-License-Identifier: MIT
// session_door: the way into the session from another network namespace.
//
// An abstract socket belongs to a network namespace, and the /proc path of the memfd is closed to
// other user and pid namespaces. A socket in the file system is open to all who see the file. But
// it would stay behind a recorder that is killed; so it is opened only when a process that executes
// another one finds that this would not get in:
//
//   CLOSED --P--> WANTED --R--> OPEN, door_path is the socket's
//                        `----> REFUSED
//
// Context: T, before an exec; raw system calls only, async-signal-safe, errno kept. It waits for
// the recorder DOOR_WAIT_MS at most.
#pragma once

#include "session/layout.h"

// The path of the socket, borrowed from the session; NULL if there is none.
const char *session_door(struct session_header *session);
