// SPDX-License-Identifier: MIT
// process_trim: lets a process give free memory back, and measures what came of it.
//
// What malloc_trim would give back is read from outside before: the resident whole pages of free
// memory in glibc's heaps (glibc_heap.h), but for the ends of arenas for threads, which malloc_trim
// keeps. No lock is taken and no thread is stopped for that: the process may change all meanwhile,
// so it is an estimate. Pages of the process are read, so a page that does not answer holds it up.
// Context: H. Failure: the process runs on as before, and `info` has a sentence.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "attach/trim.h"
#include "base/err.h"

struct release_estimate {
    uint64_t bytes;
    bool is_known;  // false: no glibc, or not all of its free memory was found
    bool is_unused; // no heap of glibc was found
};

struct process_trim {
    uint64_t before_bytes; // of resident memory
    uint64_t after_bytes;
    struct release_estimate promised; // by all calls
    struct trim trim;
};

// Do so; a thread is looked for as long as `patience_ms`. The errors of trim_run.
enum err
process_trim_run(int pid, uint64_t patience_ms, struct process_trim *out, struct err_info *info)
    MUST_USE;
