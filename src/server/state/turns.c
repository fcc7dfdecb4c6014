// SPDX-License-Identifier: MIT
#include "server/state/turns.h"

#include <errno.h>
#include <time.h>

#include "base/clock.h"

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
