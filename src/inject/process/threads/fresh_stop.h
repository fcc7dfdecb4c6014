// SPDX-License-Identifier: MIT
// fresh_stop: bring a program that is about to start to the moment when its modules are mapped and
// none of its code has run, and hold it there, under trace, for inject.h.
//
//   a process waits before its exec -> fresh_stop_begin -> it may exec -> fresh_stop_run
//     -> the caller injects, with stop_options.is_held -> fresh_stop_release
//
// A static program is there right after its exec. Otherwise the dynamic loader must have mapped and
// relocated the libraries; then it calls its empty function _dl_debug_state, which debuggers know
// (link.h, struct r_debug). Until the program is there, this function only spends time: some
// seconds, and no longer, so that the program begins by itself if this process is killed meanwhile.
// No signal is needed, whose handling would change what the program inherits.
//
// All functions for one process must be called by the same thread. If that thread ends, or its
// process is killed, the program begins. Context: H.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "base/err.h"
#include "inject/process/kernel_calls.h"

// A thread that will execute a program.
struct fresh_start {
    int pid;          // of its process, which the program will have
    int tid;          // of the thread; the same in a forked child
    bool makes_child; // the thread's next child executes it; then both numbers become the child's
    // Set by another thread: the program will not be executed after all. May be NULL.
    const _Atomic bool *is_cancelled;
    const struct kernel_calls *calls; // borrowed
};

// Trace the thread, which goes on. ERR_PERMISSION, ERR_NOT_FOUND.
enum err fresh_stop_begin(const struct fresh_start *start, struct err_info *info) MUST_USE;

// Wait for the exec and for the moment. ERR_NOT_FOUND if the process ends before, ERR_CANCELLED,
// ERR_UNSUPPORTED if the loader is unknown, ERR_LIMIT if the moment has not come within 30 seconds
// or was missed, and the errors of target_process_open. The program is unchanged after a failure.
enum err fresh_stop_run(struct fresh_start *start, struct err_info *info) MUST_USE;

// Return whether the process has ended, by itself or killed: its loader may have found no library.
// Its parent still has to wait for it.
bool fresh_stop_has_ended(const struct fresh_start *start);

// Let the program begin, whether fresh_stop_run has succeeded or not.
void fresh_stop_release(const struct fresh_start *start);
