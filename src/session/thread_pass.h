// SPDX-License-Identifier: MIT
// thread_pass: what a thread needs to let those blocks pass that are not chosen (--sample).
//
// It is the thread's own memory, not the lane's: a forked child that has its parent's compares the
// generation with its own, and nothing passes. See target/preload/record/record_sampled.h. All
// zeros: every event takes the long way. Context: T, only the thread and its signal handlers.
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "session/books/block_words.h"

struct thread_pass {
    // Of the words of chosen blocks; NULL: every block may be one. One word, so that a handler in
    // the middle of a free may replace it.
    _Atomic(struct words_region *) *directory;
    uint64_t generation;           // of process_page, when this was made; 0: none
    _Atomic uint64_t budget_bytes; // a block of as many bytes or more takes the long way
};
