// SPDX-License-Identifier: MIT
// session_clock: the thread that keeps a session alive while the recorder is busy.
//
// Each tick it writes the time since its start to the session's clock word. Recorded threads read
// time only there, and take its progress as a sign that the recorder lives. In between it answers
// processes that request the session's memory. It touches nothing else.
// Context: H.
// Cost: a tick of a millisecond takes 1.2 to 1.8 % of a core, one of 8 ms 0.2 %.
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "recorder/session/session_create.h"

struct session_clock {
    struct session *session; // borrowed, except its door
    int program_fd;          // borrowed; readable when the program has ended. -1: none
    uint64_t start_ns;       // CLOCK_MONOTONIC
    uint64_t tick_ns;        // a multiple of NS_PER_MS
    _Atomic uint64_t now_ms; // private: the program may overwrite the session's clock
    int stop_fd;             // owned; readable when the thread shall end
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

static inline uint64_t session_clock_now(const struct session_clock *clock)
{
    // Acquire: pairs with the release in run().
    return atomic_load_explicit(&clock->now_ms, memory_order_acquire);
}
