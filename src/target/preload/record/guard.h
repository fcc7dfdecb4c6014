// SPDX-License-Identifier: MIT
// guard: at most one hook of a thread records at a time.
//
//   hook -> guard_enter -> walk, write, publish -> guard_leave -> the real function goes on
//
// The guard is held only around our own code, never around the real allocator: that may throw (new
// handlers), be left by longjmp, or call hooks again, and must be free to. Only a signal handler
// can meet a held guard on its own thread; its event is deferred (deferred.h) and sent by
// guard_leave.
//
// A hook can be left without guard_leave: by siglongjmp out of a handler that interrupted it, or by
// asynchronous cancellation. The guard would then stay set for ever. So each hook notes the address
// of its frame, and an event whose frame lies near that address or further out, on the ordinary
// stack, proves that the noted frame is gone; the state is then renewed.
//
// Context: T, any thread; errno kept; no lock.
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "base/compiler.h"
#include "target/preload/process/process.h"
#include "target/preload/process/thread_state.h"

// Where the frame of the hook is that calls us, or of us if we are one.
#define OUR_FRAME ((uint64_t)__builtin_frame_address(0))

// The rest of guard_enter.
struct thread_state *guard_enter_slowly(uint64_t frame);

// The rest of guard_leave: sends what was deferred. The guard is free when it returns.
void guard_drain(struct thread_state *t);

// True if the guard of this thread is held by somebody whom the caller has interrupted.
bool guard_is_nested(void);

// Whether guard_enter takes the guard of `t`, which is t_thread_state, at once.
ALWAYS_INLINE bool guard_may_enter(const struct thread_state *t)
{
    // No session, no generation: see process.h. In a forked child `t` is its parent's, whose lane
    // may have been recycled meanwhile: then it reads as zero, as the child's own generation does.
    const uint64_t generation = process_generation();
    return LIKELY(t != NULL && generation != 0 && !guard_is_held(t) && t->generation == generation);
}

// Takes the guard of the calling thread, whose hook's frame is at `frame`. NULL: this event is not
// for the lane, because nothing is recorded, or because it is nested.
ALWAYS_INLINE struct thread_state *guard_enter(uint64_t frame)
{
    struct thread_state *t = t_thread_state;
    if (UNLIKELY(!guard_may_enter(t))) {
        return guard_enter_slowly(frame);
    }
    t->guard_frame = frame;
    guard_take(t);
    return t;
}

// Whether a handler has left something to be sent, now that the guard is free.
ALWAYS_INLINE bool guard_has_deferred(const struct thread_state *t)
{
    // Relaxed: written by handlers on this thread only.
    return UNLIKELY(atomic_load_explicit(&t->deferred.room, memory_order_relaxed) != 0);
}

ALWAYS_INLINE void guard_leave(struct thread_state *t)
{
    guard_release(t);
    if (guard_has_deferred(t)) {
        guard_drain(t);
    }
}
