// SPDX-License-Identifier: MIT
// lent_call: a thread of the target that waits in a system call calls a function, and waits again.
//
//   waits in a call --stopped for a moment--> lent code --> the function --> makes its call again
//
// Only a thread that waits as it does for work is taken: in epoll_wait, read, nanosleep, a
// condition and the like, and in no signal handler. No allocator makes these calls, and a thread
// that makes one holds no lock of an allocator. So a function that takes such locks cannot meet its
// own; it waits for other threads as each of their calls does. No other thread is stopped.
//
// From the moment that the thread goes on it needs nothing from outside, so this process may be
// killed at any time: the lent code blocks the thread's signals, keeps all its registers, the
// vector registers and errno, calls the function, restores everything, stores the result, and makes
// the system call again, which then waits anew.
//
// The code is behind the end of some module's text, beside the place of remote_calls.h, and its
// result behind the end of some module's data, where the last page has bytes that nothing uses.
// Context: H; x86-64. Failure: the target is unharmed and has not called the function, unless
// `has_begun`.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "inject/process/target_process.h"

enum {
    LENT_ARGUMENTS = 5,
    LENT_TEXT_BYTES = 40,
};

struct lent_call {
    uint64_t function;
    uint64_t arguments[LENT_ARGUMENTS];
    const char *text; // shorter than LENT_TEXT_BYTES; the first argument is its address. NULL: none
    uint32_t value_argument;  // the argument that is the address of `value`; 0: none
    uint32_t length_argument; // the argument that is the address of the length of `value`; 0: none
    uint64_t value;           // before the call, and after it
    uint64_t errno_location;  // address of __errno_location; 0: errno is not kept
    uint32_t patience_ms;     // to find a thread that waits
    uint32_t limit_ms;        // for the function
    // Results:
    uint64_t result;
    uint64_t stopped_ns; // how long the thread was stopped
    uint64_t held_ns;    // from then until its own code goes on
    int tid;
    bool has_begun;
    // The thread waits as before, so nothing runs the lent code: the next call with this struct
    // need not stop all threads to see that.
    bool is_back;
};

// Let a thread make the call. ERR_LIMIT if none waits within the patience, or if the function takes
// longer than the limit (then has_begun, and the thread goes on when it returns); ERR_UNSUPPORTED
// without room, or with a seccomp filter; the errors of thread_stop_run.
enum err lent_call_run(struct target_process *target, struct lent_call *call, struct err_info *info)
    MUST_USE;
