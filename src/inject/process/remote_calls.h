// SPDX-License-Identifier: MIT
// remote_calls: let the target make system calls.
//
// One thread of the target is stopped for a moment, gets a new program counter, and goes on: it
// makes the calls, stores their results, restores its registers and continues where it was. From
// the moment that it goes on nobody has to be there: this process may be killed at any time. The
// thread uses neither its stack nor its vector registers nor its flags.
//
//   call page (r-x)   code of one run: loop over the calls, restore registers, jump back
//   note page (rw-)   list of calls and results of the present run; inject.h keeps its own there
//
// The first run finds no such pages. Its code is written behind the end of some module's text,
// where the last page has bytes that nothing uses, and its two calls map the pages. They stay for
// ever, because a thread may still execute the last instructions of a run.
//
// Addresses are chosen here (MAP_FIXED_NOREPLACE), so that no call needs the result of another.
// Context: H. Failure: the target is unharmed; calls may have been made.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "inject/process/target_process.h"
#include "inject/process/thread_stop.h"

enum {
    REMOTE_CALLS_MAX = 64,
};

struct remote_call {
    int64_t number; // __NR_...
    uint64_t arguments[6];
    int64_t result; // set by remote_calls_run; -errno on failure
};

struct remote_calls {
    struct target_process *target; // borrowed
    struct stop_options stop;
    uint64_t page; // address of the pages; 0: not mapped yet
    uint32_t next_slot;
    struct stop_report report; // of the longest stop so far
};

// Prepare to make calls. `page` is that of an earlier remote_calls of the same target, 0 for none.
// With `stop.lift_seccomp` the target's filters do not apply to the calls, and the target needs us
// until they are made.
void remote_calls_init(struct remote_calls *calls,
                       struct target_process *target,
                       const struct stop_options *stop,
                       uint64_t page);

// Make the calls in this order and set their results. A failing call does not stop the others.
// ERR_LIMIT if no thread made them in time, ERR_UNSUPPORTED if no module has room for the first
// code, and the errors of thread_stop_run.
enum err remote_calls_run(struct remote_calls *calls,
                          struct remote_call *list,
                          size_t count,
                          struct err_info *info) MUST_USE;
