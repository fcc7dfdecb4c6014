// SPDX-License-Identifier: MIT
#include "target/producer/session_door.h"

#include <stddef.h>
#include <time.h>

#include "base/sys.h"

enum {
    DOOR_NAP_MS = 10,
    DOOR_WAIT_MS = 500, // the recorder checks every millisecond, if it gets a processor
};

const char *session_door(struct session_header *session)
{
    const struct timespec nap = {.tv_nsec = DOOR_NAP_MS * 1000000L};
    uint32_t state = DOOR_CLOSED;
    // Acquire, here and below: pairs with the recorder's release; the path is written.
    (void)atomic_compare_exchange_strong_explicit(&session->door, &state, DOOR_WANTED,
                                                  memory_order_acquire, memory_order_acquire);
    for (int naps = 0; naps < DOOR_WAIT_MS / DOOR_NAP_MS; naps++) {
        state = atomic_load_explicit(&session->door, memory_order_acquire);
        if (state != DOOR_WANTED || sys_is_forbidden()) {
            break;
        }
        (void)sys_futex_wait(&session->door, DOOR_WANTED,
                             &nap); // the reason for waking does not matter: we check
    }
    return state == DOOR_OPEN ? session->door_path : NULL;
}
