// SPDX-License-Identifier: MIT
// pending_processes: processes that were started under the session and have not joined it yet.
//
// A process joins at its first event, or when its image has been loaded. Between its birth and that
// moment, which on a busy machine can be long, nothing in the session tells of it; but its
// environment does, for it names the session. So before a recording ends, /proc is asked. One
// without any environment, and younger than we are, may be about to execute a program.
// Whoever cannot be read, or has wiped its environment, is not found. Context: H; some
// milliseconds.
#pragma once

#include <stdbool.h>

// Whether a running process other than ourselves has `session`, a value of CAIRN_SESSION, in its
// environment, or none and may be given one.
bool pending_processes_exist(const char *session);
