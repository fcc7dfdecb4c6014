// SPDX-License-Identifier: MIT
#include "server/state/answer_limits.h"

#include <errno.h>
#include <poll.h>
#include <time.h>

#include "base/clock.h"

enum err disconnect_watch_ask(void *context)
{
    struct disconnect_watch *watch = context;
    struct pollfd fd = {.fd = watch->client_fd, .events = POLLRDHUP};
    // Relaxed: the flag publishes nothing else.
    if (poll(&fd, 1, 0) > 0 || atomic_load_explicit(watch->is_closing, memory_order_relaxed)) {
        return ERR_CANCELLED;
    }
    watch->is_late = clock_monotonic_ms() >= watch->deadline_ms;
    return watch->is_late ? ERR_CANCELLED : ERR_OK;
}

bool turns_take(sem_t *turns, uint64_t patience_ms)
{
    const uint64_t end_ns = clock_monotonic_ns() + patience_ms * NS_PER_MS;
    const struct timespec end = {.tv_sec = (time_t)(end_ns / NS_PER_S),
                                 .tv_nsec = (long)(end_ns % NS_PER_S)};
    while (sem_clockwait(turns, CLOCK_MONOTONIC, &end) != 0) {
        if (errno != EINTR) {
            return false;
        }
    }
    return true;
}
