// SPDX-License-Identifier: MIT
// self_memory: reads the calling process's own memory without the risk of a fault.
//
// Inside the thread's known stack it just reads. Elsewhere it asks the kernel once for each page
// that a walk reaches. A page that another thread unmaps between that check and the read would
// still fault, but the walk reaches such pages by the stack that its own thread runs on. After it
// has followed a frame pointer a walk may reach any address; then the kernel copies each word,
// unless it refuses. Context: T; async-signal-safe.
#pragma once

#include "target/unwind/cfi/memory_reader.h"
#include "target/unwind/environment/stack_bounds.h"

struct self_memory {
    struct memory_reader reader; // first: a reader is turned back into its self_memory
    struct stack_bounds bounds;  // readable without a check
    uint64_t low;                // [low, high) is readable too: checked pages
    uint64_t high;
};

// Return a reader that trusts `bounds` (copied).
struct self_memory self_memory_over(const struct stack_bounds *bounds);
