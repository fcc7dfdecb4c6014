// SPDX-License-Identifier: MIT
#include "target/producer/waiting/exit_wait.h"

#include <time.h>

#include "base/sys.h"
#include "session/recorder_wake.h"
#include "target/producer/waiting/recorder_liveness.h"

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
    struct patience patience;
    patience_init_without_lane(&patience, session, slot->pid_namespace);
    // Relaxed: R's answer guards no other data.
    while (atomic_load_explicit(&slot->exit_wait, memory_order_relaxed) == EXIT_WAIT_WAITING &&
           !session_is_over(session)) {
        (void)sys_futex_wait(&slot->exit_wait, EXIT_WAIT_WAITING,
                             &nap); // the reason for waking does not matter: we check
        if (patience_is_over(&patience, session, NULL) || patience.unread_ms >= EXIT_WAIT_WAIT_MS) {
            session_count(session, NOTE_exit_timeout, 1);
            return;
        }
    }
}
