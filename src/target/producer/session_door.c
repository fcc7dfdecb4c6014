// SPDX-License-Identifier: MIT
#include "target/producer/session_door.h"

#include <stddef.h>
#include <time.h>

#include "base/sys.h"
#include "session/recorder_wake.h"
#include "target/producer/waiting/recorder_liveness.h"

enum {
    DOOR_NAP_MS = 10,
    DOOR_WAIT_MS = 5000, // the recorder checks every millisecond, if it gets a processor
};

const char *session_door(struct session_header *session, uint32_t pid_namespace)
{
    struct patience patience;
    const struct timespec nap = {.tv_nsec = DOOR_NAP_MS * 1000000L};
    uint32_t state = DOOR_CLOSED;
    // Acquire, here and below: pairs with the recorder's release; the path is written.
    (void)atomic_compare_exchange_strong_explicit(&session->door, &state, DOOR_WANTED,
                                                  memory_order_acquire, memory_order_acquire);
    (void)session_now_ms(session); // wakes a clock that rests
    patience_init_without_lane(&patience, session, pid_namespace);
    do {
        state = atomic_load_explicit(&session->door, memory_order_acquire);
        if (state != DOOR_WANTED || sys_is_forbidden() || session_is_over(session) ||
            patience.unread_ms > DOOR_WAIT_MS) {
            break;
        }
        (void)sys_futex_wait(&session->door, DOOR_WANTED,
                             &nap); // the reason for waking does not matter: we check
    } while (!patience_is_over(&patience, session, NULL));
    return state == DOOR_OPEN ? session->door_path : NULL;
}
