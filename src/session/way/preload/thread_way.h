// SPDX-License-Identifier: MIT
// thread_way (preload): what the preload library finds in the calling thread, by libc's means.
//
// The two ways into a process, the preload library and the agent (../agent/thread_way.h), are built
// from the same sources, and differ by the files of this name. Context: T, any thread; no calls but
// pthread_self.
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "session/thread_pass.h"

struct thread_state;

struct thread_way {
    struct thread_state *state;
    struct thread_pass pass;
};

// The only thread-local variable of the library; initial-exec.
extern __thread struct thread_way t_thread_way;

// The first stack pointer of the process, from the kernel. Missing in some libcs.
extern void *__libc_stack_end __attribute__((weak));

// Return the calling thread's state; NULL: none yet.
ALWAYS_INLINE struct thread_state *thread_way_state(void)
{
    return t_thread_way.state;
}

ALWAYS_INLINE void thread_way_set_state(struct thread_state *state)
{
    t_thread_way.pass = (struct thread_pass){0};
    atomic_signal_fence(memory_order_seq_cst); // a handler with a budget finds the state
    t_thread_way.state = state;
}

ALWAYS_INLINE struct thread_pass *thread_way_pass(void)
{
    return &t_thread_way.pass;
}

// Return the address of the thread's descriptor, which is at the top of the stack of each thread
// but the first.
ALWAYS_INLINE uint64_t thread_way_descriptor(void)
{
    return (uint64_t)pthread_self();
}

// Return the top of the first thread's stack; 0: unknown.
ALWAYS_INLINE uint64_t thread_way_main_stack_top(void)
{
    return &__libc_stack_end != NULL ? (uint64_t)__libc_stack_end : 0;
}

// Return the calling thread's value of a pthread_key_t.
ALWAYS_INLINE uint64_t thread_way_specific(uint32_t key)
{
    return (uint64_t)pthread_getspecific(key);
}
