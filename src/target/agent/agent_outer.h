// SPDX-License-Identifier: MIT
// agent_outer: the outermost call of an allocator, which is the one to record.
//
// Allocators call their own entries (calloc malloc, posix_memalign memalign). The slot of the
// thread has the frame of the outermost call; a call further in on the same stack belongs to that
// one and counts with it. A frame that was left by longjmp does not count forever: calls further
// out, or on another stack, replace it.
//
// A signal handler that interrupts the allocator itself is further in, too, and does not count. So
// the frame is noted just around the original: a handler that interrupts our recording counts.
// Context: T, as record_hot.h, which is for the includer's caller_arch.h.
#pragma once

#include <stdint.h>

#include "base/compiler.h"
#include "target/preload/record/record_hot.h"
#include "thread_way.h"

// An allocator needs less stack than this between one of its entries and another.
#define AGENT_INNER_BYTES_MAX (256u << 10)

ALWAYS_INLINE bool agent_is_enabled(void)
{
    // Acquire: the recorder has written everything else before.
    return LIKELY(atomic_load_explicit(&g_agent_page.enabled, memory_order_acquire) != 0);
}

// Whether the call with that frame is not inside the one that `outer` notes.
ALWAYS_INLINE bool agent_outer_is(uint64_t outer, uint64_t frame)
{
    // The difference wraps around if there is no outer call, or if that call is further in.
    return LIKELY(outer - frame - 1 >= AGENT_INNER_BYTES_MAX);
}

// Return the thread's slot if the call is to be recorded. NULL: only call the original.
ALWAYS_INLINE struct agent_thread *agent_outer_thread(uint64_t frame)
{
    if (!agent_is_enabled()) {
        return NULL;
    }
    struct agent_thread *thread = agent_thread_here();
    const bool is_outer = thread != NULL && agent_outer_is(thread->outer_call, frame);
    return LIKELY(is_outer) ? thread : NULL;
}

// Note the outermost call, just before the original is called. agent_outer_leave follows.
ALWAYS_INLINE void agent_outer_note(struct agent_thread *thread, uint64_t frame)
{
    thread->outer_call = frame;
}

// Do agent_outer_thread and agent_outer_note for a call that records nothing before it calls the
// original.
ALWAYS_INLINE struct agent_thread *agent_outer_enter(uint64_t frame)
{
    struct agent_thread *thread = agent_outer_thread(frame);
    if (LIKELY(thread != NULL)) {
        agent_outer_note(thread, frame);
    }
    return thread;
}

ALWAYS_INLINE void agent_outer_leave(struct agent_thread *thread)
{
    thread->outer_call = 0;
}

// Record a block for the caller of the hook that this is inlined into. Returns the block.
ALWAYS_INLINE void *
agent_outer_record(struct agent_thread *thread, void *block, uint64_t size_bytes)
{
    if (UNLIKELY(thread->pass.generation != 0) &&
        record_alloc_passes(&thread->pass, thread->state, size_bytes)) {
        return block;
    }
    return record_alloc_hot(thread->state, block, size_bytes);
}
