// SPDX-License-Identifier: MIT
// pending_processes: processes that were started under the session and have not joined it yet.
//
// A process joins at its first event, or when its image has been loaded. Until then, which may take
// long on a busy machine, the session does not know it; but its environment names the session. So
// before a recording ends, /proc is searched. A process in the middle of an exec has no
// environment: it counts if it is younger than the recorder and a process of the session may be its
// parent, or may have been. A forked child of a process with the agent joins at its first event,
// and its environment says nothing; but it maps the session's memory. A process that is unreadable
// is not found.
//
// While pids ascend, the search visits only the processes that are younger than the session, and
// one search is certain: 0.1 ms. A look at the latest pid every 50 ms proves that they do; every
// second, if the kernel has so many pids that it cannot hand out all meanwhile. If a look comes
// late, the pids may have started again at the lowest. Then all processes are visited:
// some milliseconds, and a child that a process forks during the search before it ends may be
// missed.
//
// The recorder waits for such processes (pending_wait), but not forever: one may never join, such
// as a static executable. It waits longer for one that is under way, on a machine that gives it no
// processor. Those that exist when its patience ends and could have joined are counted. One that
// maps the session's memory is a part of it: the recorder waits for its end.
// Context: H.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "host/containers/map_u64.h"

enum pending_answer {
    PENDING_NONE,   // there is none
    PENDING_UNSEEN, // none was found
    PENDING_SOME,
    PENDING_MAPPED, // one that maps the session's memory
};

// Whether the kernel has handed pids out in ascending order since a moment.
struct pid_order {
    uint64_t first_pid; // the latest one at that moment
    uint64_t last_pid;  // the latest one at the latest look
    uint64_t look_ms;   // time of that look
    uint64_t late_ms;   // a look that comes so long after the one before is late
    bool is_uncertain;
};

// Begin before the first process of the session is started. `now_ms`: clock_monotonic_ms.
void pid_order_init(struct pid_order *order, uint64_t now_ms);

// Look at the latest pid, if a look is due. Call it at least every 50 ms.
void pid_order_look(struct pid_order *order, uint64_t now_ms);

// What processes of a session have.
struct pending_marks {
    const char *session; // in their environment, or they may get it: a value of CAIRN_SESSION
    int memory;          // the session's, or they map it. -1: none
};

// Search the running processes other than this one and its copies for one with either mark.
enum pending_answer
pending_processes_find(const struct pending_marks *marks, struct pid_order *order, uint64_t now_ms);

// The wait of a recorder without a running process. All times are those of clock_monotonic_ms.
struct pending_wait {
    struct pid_order order;  // since before the first process
    uint64_t quiet_since_ms; // no recorded process has run since then
    uint64_t next_check_ms;
    unsigned vain_checks;    // since a process was last found
    bool is_certain;         // a check was certain that there is none
    bool has_mapped;         // the latest check found one that maps the session's memory
    uint64_t unjoined_count; // processes that existed at the end of the wait
};

// A recorded process runs, or has just ended.
void pending_wait_restart(struct pending_wait *wait, uint64_t now_ms);

// Whether it is time to search. Else wait->is_certain says whether no process will join any more.
bool pending_wait_is_due(const struct pending_wait *wait, uint64_t now_ms);

// One search. A process may not let its environment be read, so it is done aside (aside/aside.h).
struct pending_search {
    char *session;             // owned
    int memory;                // owned; of the session, -1: none
    struct map_u64 unrecorded; // owned
    struct pid_order order;
    uint64_t now_ms;
    bool counts;  // those that have not joined
    bool is_late; // the wait ends although some of them are under way
    enum pending_answer answer;
    uint64_t unjoined_count;
    bool has_busy; // some of those, or one in the middle of an exec, are under way
};

// Begin a search. `unrecorded` has the pids of processes that are known not to join: they are not
// counted. NULL: out of memory.
struct pending_search *pending_search_new(const struct pending_wait *wait,
                                          const struct pending_marks *marks,
                                          const struct map_u64 *unrecorded,
                                          uint64_t now_ms);
void pending_search_run(void *search);
void pending_search_free(void *search);

// Take what a search has found; NULL: it has not come to its end. Return whether no process will
// join any more.
bool pending_wait_take(struct pending_wait *wait, const struct pending_search *search);
