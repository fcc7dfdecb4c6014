// SPDX-License-Identifier: MIT
#include "target/producer/waiting/lane_backlog.h"

#include <time.h>

#include "base/compiler.h"
#include "base/sys.h"
#include "session/recorder_wake.h"
#include "target/producer/waiting/recorder_liveness.h"

static bool is_long(const struct session_header *session)
{
    return session_unread_lanes(session) > LANES_UNREAD_MAX && !session_is_over(session);
}

// Sleep until the recorder has recycled lanes, or for a while.
static void nap(struct session_header *session)
{
    static const struct timespec length = {.tv_nsec = LANE_WAIT_MS * 1000000L};
    const uint32_t recycled = atomic_load_explicit(&session->recycled_lanes, memory_order_relaxed);
    if (is_long(session)) { // with that value, so the recorder's next one ends the sleep
        session_wake_recorder(session);
        (void)sys_futex_wait(&session->recycled_lanes, recycled,
                             &length); // the reason for waking does not matter: we check
    }
}

void lane_backlog_await(struct session_header *session, uint32_t pid_namespace)
{
    if (LIKELY(!is_long(session))) {
        return;
    }
    struct patience patience;
    patience_init_without_lane(&patience, session, pid_namespace);
    const uint64_t end_ns = patience.now_ns + LANE_BACKLOG_WAIT_MS * 1000000ULL;
    session_count(session, NOTE_producer_waits, 1);
    while (is_long(session) && patience.now_ns < end_ns) {
        nap(session);
        if (patience_is_over(&patience, session, NULL)) {
            session_abandon(session);
            session_count(session, NOTE_lane_timeout, 1);
        }
    }
}
