// SPDX-License-Identifier: MIT
// recorder_wake: wakes the recorder, which sleeps between its passes, and its clock, which rests
// while nothing is recorded.
//
// A clock that rests stands still, so the recorder need not wake 1000 times a second for a program
// that sleeps. The clock word itself says so: SESSION_CLOCK_RESTS is a part of it. A hook compares
// the word with the one of its thread's latest event anyway. A word that rests is one that no
// thread has seen, so the first event of each thread finds it, leaves the common path, wakes the
// recorder and takes the time from the system. Hooks need no instruction more.
//
//   T: r1  guard = 1             R: w1  wakes = recorder_wake
//      r2  reads the clock          w2  clock = time | RESTS                    (release)
//      r3  records                  w3  a millisecond later: looks at all lanes
//      r4  guard = 0 (release)      w4  sleeps while recorder_wake == wakes
//      r5  next event: r1
//
// No wake-up is lost. An event whose r2 reads the word of w2 adds 1 to recorder_wake after w1 read
// it: a value that w1 had seen would have come before w2. So the sleep of w4 ends, or does not
// begin. An event whose r2 reads an older word began before w2 became visible, a millisecond before
// w3. So w3 either sees its guard, and R goes on, or acquires the 0 of r4, and sees what r3
// recorded. By then every later r2 reads the word of w2 or a newer one. If a thread could not be
// seen for so long, its event waits for R's next pass, at most a second; it is not lost. A process
// whose threads may not wake R says so (PROCESS_CONFINED): its threads only add to recorder_wake,
// and R looks at that now and then (recorder_rest.c). Without the system's clock they
// date their first events with the time of R's latest look.
//
// Context: T and H, async-signal-safe; one or two system calls; errno is kept.
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/sys.h"
#include "session/layout.h"

// A thread that finds a longer rest than this has another clock (a time namespace).
#define SESSION_REST_MS_MAX 60000u

// Release: a recorder that acquires the new count sees all that the caller has published.
static inline void session_wake_recorder(struct session_header *session)
{
    atomic_fetch_add_explicit(&session->recorder_wake, 1, memory_order_release);
    (void)sys_futex_wake(&session->recorder_wake, 1); // it is fine if no thread sleeps
}

// Return the time that is meant by `clock`, a reading of session_header.clock_ms. A clock that
// rests is woken.
static inline uint64_t session_time_of(struct session_header *session, uint64_t clock)
{
    if (LIKELY((clock & SESSION_CLOCK_RESTS) == 0)) {
        return clock;
    }
    const uint64_t since_ms = clock & ~SESSION_CLOCK_RESTS;
    session_wake_recorder(session);
    const uint64_t now_ms = (sys_monotonic_ns() - session->clock_start_ns) / 1000000u;
    return now_ms - since_ms <= SESSION_REST_MS_MAX ? now_ms : since_ms;
}

// Return the time. Not for the common path.
static inline uint64_t session_now_ms(struct session_header *session)
{
    // Relaxed: see lane_clock.
    return session_time_of(session, atomic_load_explicit(&session->clock_ms, memory_order_relaxed));
}
