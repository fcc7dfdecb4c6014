// SPDX-License-Identifier: MIT
// self_memory: reads the calling process's own memory without the risk of a fault.
//
// Inside the thread's known stack it just reads. Elsewhere it asks the kernel once for each page
// that a walk comes to. A page that another thread unmaps between the question and the read would
// still fault: a walk gets there by the stack that its own thread is running on. Once it has
// followed a frame pointer it may get anywhere, and the kernel copies each word, unless it refuses.
// Context: T; async-signal-safe.
#pragma once

#include "target/unwind/cfi/memory_reader.h"
#include "target/unwind/environment/stack_bounds.h"

struct self_memory {
    struct memory_reader reader; // first: a reader is turned back into its self_memory
    struct stack_bounds bounds;  // readable without asking
    uint64_t low;                // [low, high) is readable too: pages that were asked for
    uint64_t high;
};

// A reader that trusts `bounds` (copied).
struct self_memory self_memory_over(const struct stack_bounds *bounds);
