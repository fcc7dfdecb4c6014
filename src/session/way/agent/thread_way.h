// SPDX-License-Identifier: MIT
// thread_way (agent): how the agent finds the calling thread's state without thread-local storage.
//
// The thread pointer finds the thread's slot (agent_page.h). A slot is the thread's own if the
// thread id, at the place where libc keeps it, is the one that the slot was taken with: libc gives
// the stack of an ended thread, and with it the thread pointer, to a new one; and the id of a
// forked child's thread changes. See ../preload/thread_way.h for the other way.
//
// The first thread that recorded is often the only one. So it does not look for its slot: where a
// comparison is predicted, nothing waits for the thread pointer. Context: T, any thread.
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "session/agent_page.h"
#include "thread_pointer_arch.h"

struct thread_state;

extern struct agent_page g_agent_page __attribute__((visibility("hidden")));

// Take a slot for the calling thread. NULL: all are taken (counted).
struct agent_thread *agent_thread_take(uint64_t thread_pointer);

ALWAYS_INLINE struct agent_attachment *agent_attachment(void)
{
    return (struct agent_attachment *)g_agent_page.attachment;
}

ALWAYS_INLINE uint32_t agent_thread_tid_word(uint64_t thread_pointer)
{
    // Relaxed: found before any slot is taken, and then unchanged.
    const int32_t offset = atomic_load_explicit(&g_agent_page.tid_offset, memory_order_relaxed);
    return *(const volatile uint32_t *)(thread_pointer + (uint64_t)offset);
}

ALWAYS_INLINE uint32_t agent_thread_place(uint64_t thread_pointer)
{
    // Fibonacci hashing. Thread descriptors are aligned to 64 bytes, so the factor is divided by 64
    // in place of the pointer.
    return (uint32_t)(thread_pointer * (0x9e3779b97f4a7c15u >> 6) >> 52) % AGENT_THREADS;
}

// Return the slot of the thread with that pointer, which is the calling one, if it is at its place.
// NULL: use agent_thread_take.
ALWAYS_INLINE struct agent_thread *agent_thread_at_place(uint64_t pointer)
{
    struct agent_attachment *attachment = agent_attachment();
    struct agent_thread *thread = &attachment->first;
    // Relaxed, twice: only the thread itself writes this value.
    if (UNLIKELY(atomic_load_explicit(&attachment->first_pointer, memory_order_relaxed) !=
                 pointer)) {
        thread = attachment->threads + agent_thread_place(pointer);
        if (UNLIKELY(atomic_load_explicit(&thread->thread_pointer, memory_order_relaxed) !=
                     pointer)) {
            return NULL;
        }
    }
    return LIKELY(thread->tid_word == agent_thread_tid_word(pointer)) ? thread : NULL;
}

// Return the calling thread's slot; NULL: there is no room.
ALWAYS_INLINE struct agent_thread *agent_thread_here(void)
{
    const uint64_t pointer = arch_thread_pointer();
    struct agent_thread *thread = agent_thread_at_place(pointer);
    return LIKELY(thread != NULL) ? thread : agent_thread_take(pointer);
}

ALWAYS_INLINE struct thread_state *thread_way_state(void)
{
    const struct agent_thread *thread = agent_thread_here();
    return LIKELY(thread != NULL) ? thread->state : NULL;
}

ALWAYS_INLINE void thread_way_set_state(struct thread_state *state)
{
    struct agent_thread *thread = agent_thread_here();
    if (thread != NULL) {
        thread->pass = (struct thread_pass){0};
        atomic_signal_fence(memory_order_seq_cst); // a handler with a budget finds the state
        thread->state = state;
    }
}

// NULL: the thread has no slot, and so no state.
ALWAYS_INLINE struct thread_pass *thread_way_pass(void)
{
    struct agent_thread *thread = agent_thread_here();
    return LIKELY(thread != NULL) ? &thread->pass : NULL;
}

ALWAYS_INLINE uint64_t thread_way_descriptor(void)
{
    return arch_thread_pointer();
}

ALWAYS_INLINE uint64_t thread_way_main_stack_top(void)
{
    return g_agent_page.main_stack_top;
}

// Return the calling thread's value of a pthread_key_t. libc's function looks it up in the thread's
// descriptor: it takes no lock, and needs no vector register.
ALWAYS_INLINE uint64_t thread_way_specific(uint32_t key)
{
    uint64_t (*const get)(uint32_t) = (uint64_t(*)(uint32_t))g_agent_page.python.get_specific;
    return get != NULL ? get(key) : 0;
}
