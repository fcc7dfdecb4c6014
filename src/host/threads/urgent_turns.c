// SPDX-License-Identifier: MIT
#include "host/threads/urgent_turns.h"

#include <sched.h>

#include "base/clock.h"

enum {
    PRIORITY = 10,
    TURN_MS = 4,
    OTHERS_MS = 1,
    LATE_MS = 4, // on a quiet machine a thread waits less
    LATE_FOR_MS = 10000,
};

bool urgent_turns_begin(struct urgent_turns *turns)
{
    const struct sched_param parameters = {.sched_priority = PRIORITY};
    if (!turns->is_urgent) {
        turns->is_urgent =
            sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &parameters) == 0;
        turns->began_ns = clock_monotonic_ns();
    }
    return turns->is_urgent;
}

void urgent_turns_spare_others(struct urgent_turns *turns)
{
    if (turns->is_urgent && clock_monotonic_ns() > turns->began_ns + TURN_MS * NS_PER_MS) {
        clock_sleep_ns(OTHERS_MS * NS_PER_MS);
        turns->began_ns = clock_monotonic_ns();
    }
}

void urgent_turns_begin_next(struct urgent_turns *turns)
{
    turns->began_ns = clock_monotonic_ns();
}

void urgent_turns_note_wait(struct urgent_turns *turns, uint64_t due_ns, uint64_t now_ns)
{
    if (now_ns > due_ns + LATE_MS * NS_PER_MS) {
        turns->late_until_ns = now_ns + LATE_FOR_MS * NS_PER_MS;
    }
}

bool urgent_turns_is_late(const struct urgent_turns *turns, uint64_t now_ns)
{
    return now_ns < turns->late_until_ns;
}

void urgent_turns_end(struct urgent_turns *turns)
{
    if (turns->is_urgent) {
        turns->is_urgent = false;
        // It needs no permission. To clear SCHED_RESET_ON_FORK does, and the flag does no harm.
        (void)sched_setscheduler(0, SCHED_OTHER | SCHED_RESET_ON_FORK, &(struct sched_param){0});
    }
}
