// SPDX-License-Identifier: MIT
// pending_processes: processes that were started under the session and have not joined it yet.
//
// A process joins at its first event, or when its image has been loaded. Until then, which may take
// long on a busy machine, the session does not know it; but its environment names the session. So
// before a recording ends, /proc is searched. A process without any environment that is younger
// than the recorder may be about to execute a program. A process that is unreadable, or has wiped
// its environment, is not found.
// Context: H; some milliseconds.
#pragma once

#include <stdbool.h>

// Return whether a running process other than this one has `session`, a value of CAIRN_SESSION, in
// its environment, or has no environment yet and may get one.
bool pending_processes_exist(const char *session);
