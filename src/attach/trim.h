// SPDX-License-Identifier: MIT
// trim: lets the allocators of a running process give their free memory back to the kernel.
//
// The libraries and the executable of the process are searched for the functions that do so. A
// thread of the process that waits for work calls each of them (lent_call.h).
// No agent is needed, and nothing of the process changes besides.
// Context: H, one thread. Failure: the process runs on as before, and `info` has a sentence.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum {
    TRIM_CALLS_MAX = 8,
};

struct trim_call {
    const char *allocator; // static
    const char *function;  // static
    uint64_t stopped_ns;   // how long the thread was stopped
    uint64_t held_ns;      // from then until it went on
    int tid;
};

struct trim {
    struct trim_call calls[TRIM_CALLS_MAX];
    size_t count;
};

// Make the calls, one after another. A thread is looked for as long as `patience_ms`, and a call
// may take `limit_ms`. ERR_UNSUPPORTED without such a function, or on this machine; the errors of
// target_process_open and of lent_call_run. *out has the calls that were made, also after a
// failure.
enum err
trim_run(int pid, uint32_t patience_ms, uint32_t limit_ms, struct trim *out, struct err_info *info)
    MUST_USE;
