// SPDX-License-Identifier: MIT
// thread_state: the state that a thread needs to record, in its own lane.
//
// All of it is in the lane's own memory (lane_producer_state), so a thread uses no memory of the
// program and leaves none behind. thread_way.h has a thread's pointer to it.
//
//   struct thread_home    one page: the state, and the first memory of its dictionaries
//   remembered walk       by max_frames
//   modules               32 KiB
//   names                 the rest: stacks, then nodes
//   deferred events       32 KiB
//
// Only touched pages exist. A thread gets its lane at its first event and, in the preload library,
// closes it when it ends (thread_exit.h). Later events open another lane. The recorder takes back
// that lane, and the lanes of threads that end in any other way, when it sees that the thread has
// ended.
//
// Context: T. A lane is opened with all signals blocked. Errno is kept.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/page.h"
#include "target/preload/process/deferred.h"
#include "target/preload/stacks/stack_dictionary.h"
#include "target/producer/book/block_choice.h"
#include "target/producer/lane_producer.h"
#include "thread_way.h"

#define THREAD_NAME_BYTES 16u // of prctl(PR_GET_NAME)

struct thread_state {
    _Atomic uint64_t guard;  // the frame of the thread's hook that records, or 0; record_guard.h
    uint32_t max_frames;     // of one stack
    uint64_t last_allocated; // addresses of the last events; see record.h
    uint64_t last_freed;
    bool is_watched;     // somebody will ask for them
    uint64_t generation; // of process_page, when this was opened or last renewed
    uint32_t extras;     // SESSION_CHECK_UNWIND, SESSION_PYTHON: more to do for each stack
    bool name_pending;   // `name` has not been sent
    char name[THREAD_NAME_BYTES];
    struct unwind_thread *unwind;
    struct python_frames *python; // NULL: none were walked yet; see python_stack.h
    struct lane_producer producer;
    struct block_choice choice;
    struct stack_dictionary stacks;
    struct deferred deferred;
};

// The first page: the state, and the first memory of its dictionaries.
struct thread_home {
    struct thread_state state;
    struct module_entry modules[MODULE_DICTIONARY_MIN];
    uint64_t names[2 * STACK_DICTIONARY_MIN];
};
_Static_assert(sizeof(struct thread_home) <= PAGE_GRAIN, "its room");
_Static_assert(offsetof(struct thread_home, state.guard) == LANE_GUARD_OFFSET - LANE_HEADER_BYTES,
               "where the recorder looks for it");

// Return the lane that has the state, which is behind its header.
ALWAYS_INLINE struct lane_header *thread_state_lane(struct thread_state *t)
{
    return (struct lane_header *)(void *)((uint8_t *)t - LANE_HEADER_BYTES);
}

// Return the frame of the hook that records; 0 if none does.
ALWAYS_INLINE uint64_t guard_holder(const struct thread_state *t)
{
    return atomic_load_explicit(&t->guard, memory_order_relaxed); // our own
}

ALWAYS_INLINE bool guard_is_held(const struct thread_state *t)
{
    return guard_holder(t) != 0;
}

ALWAYS_INLINE void guard_take(struct thread_state *t, uint64_t frame)
{
    atomic_store_explicit(&t->guard, frame, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst); // a handler sees the guard before all later stores
}

ALWAYS_INLINE void guard_release(struct thread_state *t)
{
    atomic_signal_fence(memory_order_seq_cst); // and all earlier stores before the guard is free
    // Release: pairs with the recorder's acquire, before it reads the book.
    atomic_store_explicit(&t->guard, 0, memory_order_release);
    atomic_signal_fence(memory_order_seq_cst);
}

// Return the events to record now: enum session_recording. Relaxed: see layout.h.
ALWAYS_INLINE uint32_t what_to_record(const struct thread_state *t)
{
    return atomic_load_explicit(&t->producer.session->recording, memory_order_relaxed);
}

// Open a lane for the calling thread, and replace thread_way_state(). NULL if no lane is free
// (counted). The caller arms thread_exit.h.
struct thread_state *thread_state_open(void);

// Forget what the recorder knows on this lane, after code was unloaded, a hook was left half way,
// or the process was out of the session for some time.
void thread_state_renew(struct thread_state *t);

// Send what the lane holds, and give it back: its thread ends.
void thread_state_close(struct thread_state *t);
