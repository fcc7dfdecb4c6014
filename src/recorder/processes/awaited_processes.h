// SPDX-License-Identifier: MIT
// awaited_processes: processes that cairn has attached to, and that were begun in the recording
// before they joined the session.
//
// A process joins by the pid that it knows itself. In another pid namespace it may have ended when
// the drain asks for ours, so both are noted while it is held.
// Context: H, the recorder's main thread.
#pragma once

#include <sys/types.h>

#include "aggregate/aggregator.h"
#include "base/err.h"
#include "host/containers/vec.h"
#include "recorder/processes/pid_lookup.h"

struct awaited_process {
    struct aggregator_process *process; // borrowed
    struct inner_pid inner;
};
DEFINE_VEC(awaited_process_vec, struct awaited_process); // in no order

// Await a process that lives and was begun with our pid. ERR_NO_MEMORY.
enum err awaited_processes_add(struct awaited_process_vec *awaited,
                               struct aggregator_process *process) MUST_USE;

// Return our pid of the process that has this pid in its own namespace; 0: it is not awaited.
pid_t awaited_processes_pid(const struct awaited_process_vec *awaited, struct inner_pid inner);

// Return the process with our pid; NULL: it is not awaited.
struct aggregator_process *awaited_processes_find(const struct awaited_process_vec *awaited,
                                                  pid_t pid);

// Remove that process, too.
struct aggregator_process *awaited_processes_take(struct awaited_process_vec *awaited, pid_t pid);
