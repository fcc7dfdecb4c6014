// SPDX-License-Identifier: MIT
// release_estimate: how much memory malloc_trim would give back now, read from outside.
//
// It is the sum of the resident whole pages of free memory in glibc's heaps (glibc_heap.h), but for
// the ends of arenas for threads, which malloc_trim keeps. No lock is taken and no thread is
// stopped: the process may change all that meanwhile, so it is an estimate.
// Context: H. Pages of the process are read, so a page that does not answer holds this up.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct release_estimate {
    uint64_t bytes;
    bool is_known;  // false: no glibc, or not all of its free memory was found
    bool is_unused; // no heap of glibc was found
};

// ERR_NOT_FOUND: it has ended; other errors: it may not be read.
enum err release_estimate_read(pid_t pid, struct release_estimate *out) MUST_USE;
