// SPDX-License-Identifier: MIT
#include "target/preload/process/missed_events.h"

#include "target/preload/process/process.h"
#include "target/preload/process/thread_state.h"

// Return this thread's lane in the session that this process has left.
static struct lane_header *own_lane(void)
{
    const struct thread_state *t = thread_way_state();
    const uint64_t left = g_process->left_generation >> 32; // 0 in a forked child
    return t != NULL && left != 0 && t->generation >> 32 == left ? t->producer.lane : NULL;
}

static void count(struct session_header *session, bool is_allocation)
{
    struct lane_header *lane = own_lane();
    if (lane == NULL) {
        session_count(session, is_allocation ? LOST_missed_allocations : LOST_missed_frees, 1);
        return;
    }
    _Atomic uint64_t *counter = is_allocation ? &lane->missed_allocations : &lane->missed_frees;
    // Relaxed: only this thread writes it, and it orders nothing.
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + 1,
                          memory_order_relaxed);
}

void missed_events_count(enum event_kind kind)
{
    struct session_header *session = process_abandoned_session();
    if (session == NULL) {
        return;
    }
    if (kind == EVENT_ALLOC || kind == EVENT_REALLOC) {
        count(session, true);
    }
    if (kind == EVENT_FREE || kind == EVENT_REALLOC) {
        count(session, false);
    }
}
