// SPDX-License-Identifier: MIT
// thread_stop_one: a thread of a stop (thread_stop.h), from its interruption until it is let go.
//
//   stopped_thread_seize -> stopped_thread_wait -> stopped_thread_read -> ... -> let go
//                              |  ^
//                              v  | PTRACE_INTERRUPT, PTRACE_CONT(signal)
//                        a signal is to be delivered
//
// A stop for a signal clears the pending interruption, so the thread is interrupted again before it
// goes on: it sets up the handler's frame and stops at the handler's first instruction. So a
// stopped thread holds no signal, and letting it go passes none. What `work` of a stop may do to
// its threads is here, too. Context: H; the thread that traces.
#pragma once

#include "inject/process/threads/thread_stop.h"

enum stopped_thread_end {
    STOPPED_THREAD_STOPPED,
    STOPPED_THREAD_GONE,
    STOPPED_THREAD_LATE,
    STOPPED_THREAD_FAILED
};

// Seize and interrupt a thread. *out_gone: it has ended meanwhile.
enum err stopped_thread_seize(struct thread_stop *stop,
                              struct stopped_thread *thread,
                              bool *out_gone) MUST_USE;

enum stopped_thread_end
stopped_thread_wait(struct thread_stop *stop, struct stopped_thread *thread, uint64_t deadline_ns);

// Read the registers of a thread that has just stopped. ERR_NOT_FOUND: it has ended.
enum err stopped_thread_read(struct thread_stop *stop, struct stopped_thread *thread) MUST_USE;
