// SPDX-License-Identifier: MIT
// word_checker: the results of word_checker.so, in the file that HEAP_TRACER names.
#pragma once

#include "heap_tracer.h"
#include "session/books/shared_sum.h"

struct checker_file {
    struct tracer_file
        sums; // what the words say; the peak is that of a sum which all events change
    // Of the shared sum, at the end of the latest process. Its peak is within threads_max times
    // batch_max + block_max of the other one.
    _Atomic uint64_t sum_bytes;
    _Atomic uint64_t sum_peak_bytes;
    _Atomic uint64_t threads_max;
    _Atomic uint64_t batch_max;
    _Atomic uint64_t block_max;
    struct shared_sum sum;
};
