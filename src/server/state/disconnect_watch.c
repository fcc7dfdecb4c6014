// SPDX-License-Identifier: MIT
#include "server/state/disconnect_watch.h"

#include <poll.h>

#include "base/clock.h"

enum err disconnect_watch_ask(void *context)
{
    struct disconnect_watch *watch = context;
    if (watch->cancel != NULL) {
        answer_slot_tell(watch->slot, watch->cancel);
    }
    struct pollfd fd = {.fd = watch->client_fd, .events = POLLRDHUP};
    // Relaxed: the flag publishes nothing else.
    if (poll(&fd, 1, 0) > 0 || atomic_load_explicit(watch->is_closing, memory_order_relaxed)) {
        return ERR_CANCELLED;
    }
    watch->is_late = clock_monotonic_ms() >= watch->deadline_ms;
    return watch->is_late ? ERR_CANCELLED : ERR_OK;
}
