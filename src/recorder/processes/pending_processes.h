// SPDX-License-Identifier: MIT
// pending_processes: processes that were started under the session and have not joined it yet.
//
// A process joins at its first event, or when its image has been loaded. Until then, which may take
// long on a busy machine, the session does not know it; but its environment names the session. So
// before a recording ends, /proc is searched. A process without any environment that is younger
// than the recorder may be about to execute a program. A process that is unreadable, or has wiped
// its environment, is not found.
//
// The search of a short run visits only the processes that are younger than the recorder, and one
// search is certain then: 0.1 ms. Later the pids may have started again at the lowest, so all
// processes are visited: some milliseconds, and a child that a process forks during the search
// before it ends may be missed.
// Context: H.
#pragma once

#include <stdint.h>

enum pending_answer {
    PENDING_NONE,   // there is none
    PENDING_UNSEEN, // none was found
    PENDING_SOME,
};

// Search the running processes other than this one for one that has `session`, a value of
// CAIRN_SESSION, in its environment, or that has no environment yet and may get one. `age_ms` is
// the time since this process started the first process of the session, or longer.
enum pending_answer pending_processes_find(const char *session, uint64_t age_ms);
