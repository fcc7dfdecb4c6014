// SPDX-License-Identifier: MIT
// heap_tracer: the results of heap_tracer.so, which is preloaded below cairn's library.
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define TRACER_KINDS 9 // 0: unmarked allocations

struct tracer_sums {
    _Atomic uint64_t allocations;
    _Atomic uint64_t allocated_bytes;
    _Atomic uint64_t frees;
    _Atomic uint64_t freed_bytes;
    _Atomic uint64_t temporary;
};

struct tracer_bound {
    _Atomic uint64_t live_bytes;
    _Atomic uint64_t peak_bytes;
};

// The file that HEAP_TRACER names; all processes of the program that HEAP_TRACER_OF names share it.
struct tracer_file {
    struct tracer_sums kinds[TRACER_KINDS];
    _Atomic uint64_t live_bytes;
    _Atomic uint64_t peak_bytes;
    // In whatever order the calls took effect between their beginnings and their ends, the peak is
    // at least the first, and at most the second. The first is of marked blocks of the first
    // process.
    struct tracer_bound at_least;
    struct tracer_bound at_most;
    _Atomic uint64_t errors; // the tracer's own errors: its figures are invalid
};

// Set the kind of the calling thread's next allocations. Undefined without the tracer.
void tracer_set_kind(int kind) __attribute__((weak));

// A marked block is about to be freed or reallocated.
void tracer_leaves(const void *block) __attribute__((weak));

// The kind of now, and whether a signal handler must not allocate now: only word_checker.so lets
// handlers allocate.
int tracer_kind(void) __attribute__((weak));
int tracer_is_inside(void) __attribute__((weak));

// Blocks of an allocator that the tracer does not see: before each is reported, and after it was
// resized where it is, or taken back.
void tracer_add(void *block, size_t size) __attribute__((weak));
void tracer_resize(void *block, size_t size) __attribute__((weak));
void tracer_take(void *block) __attribute__((weak));
