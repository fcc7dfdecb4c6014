// SPDX-License-Identifier: MIT
#include "target/preload/record/record_guard.h"

#include <signal.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/sys.h"
#include "target/preload/process/thread_exit.h"
#include "target/preload/record/record.h"
#include "target/producer/entry/lane_entry.h"

// On an alternate signal stack addresses do not show the order of calls.
static bool on_alternate_stack(void)
{
    stack_t stack = {.ss_flags = 0};
    return !sys_failed(SYS_CALL(SYS_sigaltstack, 0, (long)&stack)) &&
           (stack.ss_flags & SS_ONSTACK) != 0;
}

// Hooks that one function called one after the other have their frames at addresses that differ by
// the sizes of those frames, which are less than this. A hook that interrupted another is further
// in than this: the kernel puts a signal frame between them, 1,080 bytes and more on x86-64 (red
// zone, registers, FXSAVE area), 4,688 on AArch64.
#define FRAMES_APART_BYTES_MAX 512u

bool guard_frame_is_gone(uint64_t noted, uint64_t frame)
{
    return frame + FRAMES_APART_BYTES_MAX >= noted && !on_alternate_stack();
}

// Return this thread's state if it belongs to this process; a forked child finds its parent's.
static struct thread_state *own_state(void)
{
    struct thread_state *t = thread_way_state();
    return t != NULL && t->generation >> 32 == process_generation() >> 32 ? t : NULL;
}

bool guard_is_nested(void)
{
    const struct thread_state *t = process_session() != NULL ? own_state() : NULL;
    return t != NULL && guard_is_held(t);
}

static void send_name(struct thread_state *t)
{
    const struct bytes name = {.data = (const uint8_t *)t->name,
                               .len = strnlen(t->name, THREAD_NAME_BYTES)};
    lane_describe(&t->producer, WIRE_TEXT_THREAD_NAME, name, false);
    t->name_pending = false;
}

// Send the events of handlers. The guard is held.
static void send_deferred_events(struct thread_state *t)
{
    uint64_t expected;
    do {
        expected = record_expected_deferred(t);
        deferred_drain(&t->deferred, record_deferred, t);
    } while (!record_no_deferred(t, expected));
}

// Take the guard, bring the state up to date, and send what handlers have left.
static struct thread_state *take(struct thread_state *t, uint64_t frame, bool was_abandoned)
{
    guard_take(t, frame);
    if (was_abandoned || t->generation != process_generation()) {
        thread_state_renew(t);
    }
    if (t->name_pending) {
        send_name(t);
    }
    if (guard_has_deferred(t)) {
        send_deferred_events(t);
    }
    return t;
}

struct thread_state *guard_take_over(uint64_t frame)
{
    struct thread_state *t = process_session() != NULL ? own_state() : NULL;
    return t != NULL ? take(t, frame, guard_is_held(t)) : NULL;
}

struct thread_state *guard_enter_slowly(uint64_t frame)
{
    if (process_session() == NULL && !process_join()) {
        process_count_unrecorded();
        return NULL;
    }
    struct thread_state *t = own_state();
    if (t == NULL) {
        t = thread_state_open();
        if (t == NULL) {
            return NULL;
        }
        thread_exit_arm();
    }
    const bool was_abandoned = guard_is_held(t) && guard_frame_is_gone(guard_holder(t), frame);
    if (guard_is_held(t) && !was_abandoned) {
        return NULL;
    }
    return take(t, frame, was_abandoned);
}

void guard_drain(struct thread_state *t)
{
    do {
        guard_take(t, OUR_FRAME);
        send_deferred_events(t);
        guard_release(t);
    } while (guard_has_deferred(t));
}
