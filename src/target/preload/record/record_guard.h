// SPDX-License-Identifier: MIT
// record_guard: at most one hook of a thread records at a time.
//
//   hook -> guard_enter -> walk, write, publish -> guard_leave -> the real function goes on
//
// The guard is held only around our own code, never around the real allocator, which may throw (new
// handlers), be left by longjmp, or call hooks again. Only a signal handler can meet a held guard
// on its own thread; its event is deferred (deferred.h), and guard_leave sends it.
//
// A siglongjmp out of a handler that interrupted a hook, or an asynchronous cancellation, leaves
// the hook without guard_leave. The guard would then stay set. So the guard is the address of the
// hook's frame. An event whose frame is near that address or further out, on the ordinary stack,
// proves that the noted frame no longer exists; the state is then renewed. The frame and its being
// held are one word: a handler may come between any two stores, and leave its own frame in a word
// that it finds free.
//
// Handlers may also come when the guard is free again and an earlier handler's events are not sent
// yet. They send these first, because their own events may be about the same blocks.
//
// Context: T, any thread; errno kept; no lock.
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "base/compiler.h"
#include "target/preload/process/process.h"
#include "target/preload/process/thread_state.h"

// The address of the calling hook's frame, or of our own frame in a hook.
#define OUR_FRAME ((uint64_t)__builtin_frame_address(0))

// Do the rest of guard_enter.
struct thread_state *guard_enter_slowly(uint64_t frame);

// Do the rest of guard_leave: send the deferred events. The guard is free afterwards.
void guard_drain(struct thread_state *t);

// Take the guard of the calling thread, also from code that the caller interrupted, because that
// code will not go on. NULL as for guard_enter, or the thread has no lane.
struct thread_state *guard_take_over(uint64_t frame);

// Whether a hook whose frame was noted is gone: it was left by longjmp. `frame` is the caller's.
bool guard_frame_is_gone(uint64_t noted, uint64_t frame);

// Whether code that the caller interrupted holds this thread's guard.
bool guard_is_nested(void);

// Whether `t`, which is thread_way_state(), is this process's, and up to date.
ALWAYS_INLINE bool thread_state_is_current(const struct thread_state *t)
{
    // A session implies a generation: see process.h. In a forked child `t` is its parent's, whose
    // lane may have been recycled meanwhile: then it reads as zero, as the child's own generation
    // does.
    const uint64_t generation = process_generation();
    return LIKELY(t != NULL && generation != 0 && t->generation == generation);
}

// Whether a handler has left an event to send.
ALWAYS_INLINE bool guard_has_deferred(const struct thread_state *t)
{
    // Relaxed: only handlers on this thread write it.
    return UNLIKELY(atomic_load_explicit(&t->deferred.room, memory_order_relaxed) != 0);
}

// Whether guard_enter takes the guard of `t`, which is thread_way_state(), at once.
ALWAYS_INLINE bool guard_may_enter(const struct thread_state *t)
{
    return LIKELY(thread_state_is_current(t) && !guard_is_held(t)) && !guard_has_deferred(t);
}

// Take the guard of the calling thread, whose hook's frame is at `frame`. NULL: the event must not
// use the lane, because nothing is recorded, or because the event is nested.
ALWAYS_INLINE struct thread_state *guard_enter(uint64_t frame)
{
    struct thread_state *t = thread_way_state();
    if (UNLIKELY(!guard_may_enter(t))) {
        return guard_enter_slowly(frame);
    }
    guard_take(t, frame);
    return t;
}

ALWAYS_INLINE void guard_leave(struct thread_state *t)
{
    guard_release(t);
    if (guard_has_deferred(t)) {
        guard_drain(t);
    }
}

// Give the calling thread a lane, and its process a slot, which it may be unable to get later.
static inline void guard_prepare(void)
{
    struct thread_state *t = guard_enter(OUR_FRAME);
    if (t != NULL) {
        guard_leave(t);
    }
}
