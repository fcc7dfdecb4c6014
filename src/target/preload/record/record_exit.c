// SPDX-License-Identifier: MIT
#include "target/preload/record/record_exit.h"

#include "base/sys.h"
#include "target/preload/record/record_guard.h"
#include "target/producer/entry/lane_entry.h"

// A handler that interrupted a hook of this thread may end the process: its events, deferred until
// then, are sent too. A thread that has no lane has counted nothing.
static void send_counted(void)
{
    struct thread_state *t = guard_take_over(OUR_FRAME);
    if (t != NULL) {
        (void)lane_flush(&t->producer); // false: recording has ended
        guard_leave(t);
    }
}

void record_exec(void)
{
    if (!sys_is_forbidden() && process_is_this()) {
        send_counted();
    }
}

void record_exit(void)
{
    if (process_session() != NULL) {
        send_counted();
        process_note_exit();
    }
}

void record_own_exit(void)
{
    if (sys_is_forbidden()) {
        process_forgo_exit_note();
    } else if (process_is_this()) {
        record_exit();
    }
}
