// SPDX-License-Identifier: MIT
// clock: the time in nanoseconds.
//
// libc reads these clocks without a system call where possible. Code in the target must not call
// libc for this and uses sys_monotonic_ns() of base/sys.h, the same clock. Context: H.
#pragma once

#include <stdint.h>
#include <time.h>

#define NS_PER_S  UINT64_C(1000000000)
#define NS_PER_MS UINT64_C(1000000)
#define MS_PER_S  1000
#define US_PER_MS 1000

static inline uint64_t clock_to_ns(struct timespec time)
{
    return (uint64_t)time.tv_sec * NS_PER_S + (uint64_t)time.tv_nsec;
}

static inline uint64_t clock_read_ns(clockid_t clock)
{
    struct timespec now;
    (void)clock_gettime(clock, &now); // cannot fail for the clocks below
    return clock_to_ns(now);
}

static inline uint64_t clock_monotonic_ns(void)
{
    return clock_read_ns(CLOCK_MONOTONIC);
}

static inline uint64_t clock_monotonic_ms(void)
{
    return clock_monotonic_ns() / NS_PER_MS;
}

// Return the time since 1970. It may jump.
static inline uint64_t clock_real_ns(void)
{
    return clock_read_ns(CLOCK_REALTIME);
}

// Sleep for that long, or until a signal comes.
static inline void clock_sleep_ns(uint64_t ns)
{
    const struct timespec time = {.tv_sec = (time_t)(ns / NS_PER_S),
                                  .tv_nsec = (long)(ns % NS_PER_S)};
    (void)nanosleep(&time, NULL);
}

// Return the processor time of the calling thread.
static inline uint64_t clock_thread_cpu_ns(void)
{
    return clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
}
