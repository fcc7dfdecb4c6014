// SPDX-License-Identifier: MIT
// workload: shared by all benchmark programs: arguments, random numbers, threads, the result.
//
// A workload takes `name=value` arguments, does a stated number of operations from a fixed seed and
// writes one line of JSON into the file given as `result=FILE`. (Standard output belongs to the
// tools that wrap it; some of them print there.) The timed section excludes start and end of the
// process; the harness measures those from outside. This code does not allocate inside the timed
// section.
#pragma once

#include <stdint.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

// A numeric argument: *value holds the default, and then the given value.
struct workload_param {
    const char *name;
    uint64_t *value;
    uint64_t min;
    uint64_t max;
    const char *help;
};

// A figure of the result line; an array of them ends with a NULL name.
struct workload_figure {
    const char *name;
    uint64_t value;
};

// A xorshift64* generator: much cheaper than the allocator, and equal on all machines.
struct workload_random {
    uint64_t state; // never 0
};

static inline struct workload_random workload_random_from(uint64_t seed)
{
    struct workload_random random = {(seed + 1) * 0x9e3779b97f4a7c15ULL};
    random.state |= 1;
    return random;
}

static inline uint32_t workload_random_next(struct workload_random *random)
{
    uint64_t x = random->state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    random->state = x;
    return (uint32_t)((x * 0x2545f4914f6cdd1dULL) >> 32);
}

// Return a uniform number in [0, bound), with a bias below bound / 2^32; needs no division.
static inline uint32_t workload_random_below(struct workload_random *random, uint32_t bound)
{
    return (uint32_t)(((uint64_t)workload_random_next(random) * bound) >> 32);
}

// Make the compiler assume that the memory at `p` is read and written here.
static inline void workload_keep(void *p)
{
    __asm__ volatile("" : : "r"(p) : "memory");
}

// Read `name=value` arguments into `params` (ends with a NULL name). `result=FILE` is always known.
// Print the usage and exit with 2 if an argument is unknown or out of range.
void workload_args(int argc, char **argv, const struct workload_param *params);

// Return CLOCK_MONOTONIC in nanoseconds.
uint64_t workload_now_ns(void);

// Run body(arg, i) for i < threads. Return the nanoseconds from the moment when all may start until
// the last has ended. One thread means the main thread, so that a program without threads is
// measured as such (glibc omits its locks there); 0 means one worker, for which the main thread
// waits. Exit with 1 if a thread cannot be created.
uint64_t workload_run_threads(uint32_t threads, void (*body)(void *arg, uint32_t index), void *arg);

// Write the result line: `ops` operations per thread took `loop_ns` nanoseconds. Exit with 1 if the
// file cannot be written.
void workload_report(const char *name,
                     uint64_t ops,
                     uint64_t loop_ns,
                     const struct workload_figure *figures);

// Print a message and exit with 1.
__attribute__((noreturn, cold)) void workload_out_of_memory(void);

// malloc that ends the program without memory; inlined, so that it adds no frame to a stack.
static inline void *workload_alloc(uint64_t bytes)
{
    void *p = malloc(bytes);
    if (!p) {
        workload_out_of_memory();
    }
    return p;
}

#ifdef __cplusplus
}
#endif
