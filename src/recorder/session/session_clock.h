// SPDX-License-Identifier: MIT
// session_clock: the thread that keeps a session alive while the recorder is busy.
//
// Each tick it writes the time since its start to the session's clock word. Recorded threads read
// time only there, and take its progress as a sign that the recorder lives. In between it answers
// processes that request the session's memory. It touches nothing else.
//
// While nothing is recorded it rests: the recorder's main thread writes a word that says so
// (recorder_wake.h), and this thread sleeps until a recorded thread wakes it. Then it goes on by
// itself, whatever the main thread does, and makes wake_fd readable. It does not answer then, so
// the main thread, which sleeps as well, watches the session's socket and ends the rest.
//
//   main thread    session_clock_rest  .. again in each pass ..        session_clock_go_on
//   this thread    ticks | sleeps on recorder_wake ................. | ticks
//                                          a recorded thread wakes it | ticks, wake_fd
//
// While it runs, session_header.recorder_life has its id, and the kernel notes its death there.
//
// On a busy machine, where ticks come late, the thread has real-time priority, with permission.
// Context: H. All functions but session_clock_now: the main thread.
// Cost: a tick of a millisecond takes 1.2 to 1.8 % of a core, one of 8 ms 0.2 %, a rest nothing.
#pragma once

#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "recorder/session/clock_gaps.h"
#include "recorder/session/session_create.h"

struct session_clock {
    struct session *session; // borrowed, except its door
    int program_fd;          // borrowed; readable when the program has ended. -1: none
    uint64_t start_ns;       // CLOCK_MONOTONIC
    uint64_t tick_ns;        // a multiple of NS_PER_MS
    _Atomic uint64_t now_ms; // private: the program may overwrite the session's clock
    int stop_fd;             // owned; readable when the thread shall end
    int wake_fd;             // owned; readable when a recorded thread has ended a rest
    pthread_mutex_t lock;    // of the fields below, and of writing the clock
    bool is_resting;
    uint32_t seen_wakes; // recorder_wake before the rest
    struct clock_gaps gaps;
    struct robust_list_head life; // the kernel reads both when the thread ends
    struct robust_list life_entry;
    pthread_t thread;
    bool is_running;
};

// Start the thread; time 0 is now. `clock` must not move. `program_fd`: a pidfd, or -1.
// `tick_ms`: at least 1, and so short that waiting threads see the recorder live.
enum err session_clock_start(struct session_clock *clock,
                             struct session *session,
                             int program_fd,
                             uint32_t tick_ms,
                             struct err_info *info) MUST_USE;

// End the thread. Accepts a clock that never ran.
void session_clock_stop(struct session_clock *clock);

// Rest from now on, or, while it rests, set the time. False: a recorded thread has ended the rest
// since the latest call, or just now.
bool session_clock_rest(struct session_clock *clock) MUST_USE;

// End the rest, if there is one.
void session_clock_go_on(struct session_clock *clock);

// Set the time: after a stop of the whole recorder the thread may come later than the caller.
void session_clock_set(struct session_clock *clock);

// Return how much later than `read_ms` a program may have read the clock with that time, because
// the recorder was stopped or late.
uint64_t session_clock_error_ms(struct session_clock *clock, uint64_t read_ms);

// Return the time by the system's clock, however late the thread is.
static inline uint64_t session_clock_true_ms(const struct session_clock *clock)
{
    return (clock_monotonic_ns() - clock->start_ns) / NS_PER_MS;
}

static inline uint64_t session_clock_now(const struct session_clock *clock)
{
    // Acquire: pairs with the release in publish().
    return atomic_load_explicit(&clock->now_ms, memory_order_acquire);
}
