// SPDX-License-Identifier: MIT
#include "target/producer/waiting/exit_wait.h"

#include <time.h>

#include "base/sys.h"
#include "session/recorder_wake.h"

enum {
    STILL_NAPS_MAX = 10, // without progress of the clock: the recorder is dead
    NAPS_MAX = 100,      // a nap may be cut short by a signal
};

static uint64_t clock_of(const struct session_header *session)
{
    return atomic_load_explicit(&session->clock_ms, memory_order_relaxed);
}

void exit_wait_await(struct session_header *session, struct process_slot *slot)
{
    uint32_t wanted = EXIT_WAIT_WANTED;
    // Release: exit_ms and what this thread has published come first for R, which acquires it.
    if (!atomic_compare_exchange_strong_explicit(&slot->exit_wait, &wanted, EXIT_WAIT_WAITING,
                                                 memory_order_release, memory_order_relaxed)) {
        return;
    }
    session_wake_recorder(session);
    const struct timespec nap = {.tv_nsec = EXIT_WAIT_NAP_MS * 1000000L};
    const uint64_t begun_ms = clock_of(session);
    uint64_t seen_ms = begun_ms;
    uint32_t still_naps = 0;
    for (uint32_t naps = 0; naps < NAPS_MAX && still_naps < STILL_NAPS_MAX; naps++) {
        // Relaxed: R's answer guards no other data.
        if (atomic_load_explicit(&slot->exit_wait, memory_order_relaxed) != EXIT_WAIT_WAITING ||
            session_is_over(session) || seen_ms - begun_ms > EXIT_WAIT_WAIT_MS) {
            return;
        }
        (void)sys_futex_wait(&slot->exit_wait, EXIT_WAIT_WAITING,
                             &nap); // the reason for waking does not matter: we check
        const uint64_t now_ms = clock_of(session);
        still_naps = now_ms == seen_ms ? still_naps + 1 : 0;
        seen_ms = now_ms;
    }
}
