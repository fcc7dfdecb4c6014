// SPDX-License-Identifier: MIT
// trim: lets the allocators of a running process give their free memory back to the kernel, and
// asks them how much they would.
//
// The libraries and the executable of the process are searched for the functions that do so. A
// thread of the process that waits for work calls each of them (lent_call.h).
// jemalloc and tcmalloc count their free memory, and have a function that says so; glibc's is read
// from outside (recorder/outside/glibc_heap.h), and mimalloc has none.
// No agent is needed, and nothing of the process changes besides.
// Context: H, one thread. Failure: the process runs on as before, and `info` has a sentence.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "inject/process/target_process.h"

enum {
    TRIM_CALLS_MAX = 8,
    TRIM_QUERIES_MAX = 6,
};

struct trim_call {
    const char *allocator; // static
    const char *function;  // static
    uint64_t stopped_ns;   // how long the thread was stopped
    uint64_t held_ns;      // from then until it went on
    int tid;
    uint64_t promised_bytes; // what its allocator said before that it would give back
    bool is_promised;
};

struct trim {
    struct trim_call calls[TRIM_CALLS_MAX];
    size_t count;
};

// What an allocator says of its memory.
struct trim_answer {
    uint64_t kept_bytes;     // resident, and not in blocks in use
    uint64_t released_bytes; // of these: what its function would give back
    uint64_t rss_bytes;      // of the process, then
};

// Whether the allocator of that name can be asked; NULL: unknown.
bool trim_can_ask(const char *allocator);

// Ask the allocator in a module. A thread is looked for as long as `patience_ms`, for each of at
// most TRIM_QUERIES_MAX calls. ERR_UNSUPPORTED without its function, or on this machine; the
// errors of lent_call_run.
enum err trim_ask(struct target_process *target,
                  const struct target_module *module,
                  uint32_t patience_ms,
                  struct trim_answer *out,
                  struct err_info *info) MUST_USE;

// Make the calls, one after another. A thread is looked for as long as `patience_ms`, and a call
// may take `limit_ms`. ERR_UNSUPPORTED without such a function, or on this machine; the errors of
// target_process_open and of lent_call_run. *out has the calls that were made, also after a
// failure.
enum err
trim_run(int pid, uint32_t patience_ms, uint32_t limit_ms, struct trim *out, struct err_info *info)
    MUST_USE;
