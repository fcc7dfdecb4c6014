// SPDX-License-Identifier: MIT
// thread_pass: what a thread needs to let those blocks pass that --sample does not choose.
//
// It is the thread's own memory, not the lane's: a forked child that has its parent's compares the
// generation with its own, and nothing passes. See target/preload/record/record_bytes.h. All zeros:
// every event takes the long way. Context: T, only the thread and its signal handlers.
#pragma once

#include <stdatomic.h>
#include <stdint.h>

// A level of the filter of a process's chosen blocks (target/producer/sampled_blocks.h).
struct block_filter {
    const _Atomic uint8_t *counters; // mask + 1
    uint64_t mask;
};

struct thread_pass {
    // That frees ask; NULL: every block may be a chosen one. One word, so that a handler in the
    // middle of a free may replace it.
    const struct block_filter *filter;
    uint64_t generation;           // of process_page, when this was made; 0: none
    _Atomic uint64_t budget_bytes; // a block of as many bytes or more takes the long way
};
