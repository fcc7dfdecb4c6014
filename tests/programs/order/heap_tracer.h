// SPDX-License-Identifier: MIT
// heap_tracer: what heap_tracer.so, preloaded below cairn's library, writes down of a run.
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#define TRACER_KINDS 9 // 0: whatever the program did not mark

struct tracer_sums {
    _Atomic uint64_t allocations;
    _Atomic uint64_t allocated_bytes;
    _Atomic uint64_t frees;
    _Atomic uint64_t freed_bytes;
    _Atomic uint64_t temporary;
};

// The file that HEAP_TRACER names; all processes of the program that HEAP_TRACER_OF names share it.
struct tracer_file {
    struct tracer_sums kinds[TRACER_KINDS];
    _Atomic uint64_t live_bytes;
    _Atomic uint64_t peak_bytes;
    _Atomic uint64_t errors; // the tracer's own: its figures are worth nothing
};

// The kind of what the calling thread allocates from now on. Not there without the tracer.
void tracer_set_kind(int kind) __attribute__((weak));
