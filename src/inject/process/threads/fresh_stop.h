// SPDX-License-Identifier: MIT
// fresh_stop: bring a program that is about to start to the moment when its modules are mapped and
// none of its code has run, and leave it stopped there, by SIGSTOP, for inject.h.
//
//   child waits before its exec -> fresh_stop_begin -> it may exec -> fresh_stop_run
//     -> the caller injects -> fresh_stop_release
//
// A static program is there right after its exec. Otherwise the dynamic loader must have mapped and
// relocated the libraries; then it calls its empty function _dl_debug_state, which debuggers know
// (link.h, struct r_debug). This function gets an endless loop until the program is there. So no
// signal is needed, whose handling would change what the program inherits. The loop stays, also at
// the entry of a static program, until the release: the injector lets the stopped thread run for a
// moment (remote_calls.h), in which nothing of the program may be run.
//
// Both functions must be called by the same thread. The child dies with it in between
// (PTRACE_O_EXITKILL), since nothing of it has run. Context: H.
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "inject/process/kernel_calls.h"
#include "inject/process/target_process.h"

enum {
    FRESH_LOOP_BYTES = 2,
};

// Trace a child of this process that waits. ERR_PERMISSION, ERR_NOT_FOUND.
enum err fresh_stop_begin(int pid, const struct kernel_calls *calls, struct err_info *info)
    MUST_USE;

// Where a program is held.
struct fresh_stop {
    uint64_t loop; // its program counter
    uint8_t old[FRESH_LOOP_BYTES];
};

// Wait for the exec and for the moment, and leave the program stopped and untraced. ERR_NOT_FOUND
// if it ends before, ERR_UNSUPPORTED if its loader has no _dl_debug_state, ERR_LIMIT if it has not
// arrived within 60 seconds, and the errors of target_process_open. After a failure it is killed.
enum err fresh_stop_run(int pid,
                        const struct kernel_calls *calls,
                        struct fresh_stop *out,
                        struct err_info *info) MUST_USE;

// Remove the loop and let the program begin. It must still be stopped. ERR_NOT_FOUND if it has
// ended.
enum err fresh_stop_release(const struct fresh_stop *held, const struct target_process *target)
    MUST_USE;
