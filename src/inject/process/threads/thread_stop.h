// SPDX-License-Identifier: MIT
// thread_stop: stop all threads of a target for a moment, work on them, and let them go.
//
// thread_stop_run() starts a thread of its own, which traces the target (PTRACE_SEIZE,
// PTRACE_INTERRUPT), calls `work` while every thread of the target is stopped, and ends. Its end
// lets all threads go at once, however the work went, also those that did not stop in time. With
// permission it runs in urgent turns (urgent_turns.h), because otherwise each thread that it lets
// go competes with it, and then it lets them go one after another: thousands of threads that begin
// to run at once would hold up all others.
//
// The target does not notice: pending signals arrive, interrupted system calls are restarted by the
// kernel. Some calls return EINTR to a thread that a tracer stopped (epoll_wait, semop,
// rt_sigtimedwait, receiving and sending with a timeout); these are restarted here. A target that
// was stopped by a signal stays stopped.
//
// A target in a vfork waits for its child and cannot stop. It is waited for before any thread is
// stopped. If the threads are not all stopped within the limit, they are let go and the stop is
// tried again; after the last attempt ERR_LIMIT. While a stop runs, no other thread of this process
// may call waitpid(-1), which would take the answers.
//
// Context: H; one stop of a target at a time.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/user.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "host/threads/urgent_turns.h"
#include "inject/process/proc_files.h"
#include "inject/process/target_process.h"

struct stopped_thread {
    int tid;
    struct user_regs_struct regs; // as they are when it goes on; change with thread_stop_set_regs
    bool was_in_group_stop;       // by SIGSTOP and its kin, before we came
    struct current_call before;   // the call that it was in; number -1: none, or not needed
};
DEFINE_VEC(stopped_thread_vec, struct stopped_thread);

struct stop_options {
    uint32_t limit_ms; // of one stop; 0: 100
    uint32_t attempts; // 0: 10
    int only_tid;      // stop this thread alone; 0: all
    // Suspend the target's seccomp filters while it is traced, or fail. Without it they are
    // suspended where the kernel permits it: the target may have installed one since it was opened.
    bool lift_seccomp;
    // The calling thread traces the target, which has one thread, and it is stopped (fresh_stop.h).
    // So it is neither stopped nor let go, and `work` is called by the calling thread.
    bool is_held;
};

struct stop_report {
    uint64_t stop_ns; // from the first interruption until all threads were stopped
    uint64_t work_ns;
    uint64_t held_ns; // from the first interruption until all were let go
    uint32_t threads;
    uint32_t attempts;
    uint32_t restarted_calls; // that would have returned EINTR
    bool is_realtime;
};

struct thread_stop {
    struct target_process *target;
    const struct stop_options *options;
    struct stopped_thread_vec threads;
    struct urgent_turns turns; // of the tracing thread; `work` calls urgent_turns_spare_others()
    bool try_again;            // set by `work`: let go, and stop again a little later
    struct stop_report report;
};

// Stop the threads and call work(stop, context, info) on a thread of this process. Returns the
// result of `work`, ERR_LIMIT if the threads did not stop in time or `work` always asked to try
// again, ERR_NOT_FOUND if the target has ended, ERR_PERMISSION if it may not be traced, ERR_IO.
// `report` (may be NULL) is also written on failure.
enum err
thread_stop_run(struct target_process *target,
                const struct stop_options *options,
                enum err (*work)(struct thread_stop *stop, void *context, struct err_info *info),
                void *context,
                struct stop_report *report,
                struct err_info *info) MUST_USE;

// For `work` only:

// Set the registers of a stopped thread. It goes on with them.
enum err thread_stop_set_regs(struct thread_stop *stop,
                              size_t index,
                              const struct user_regs_struct *regs) MUST_USE;

// Write to the target's memory, read-only pages included, by whatever way the kernel permits.
enum err thread_stop_write(struct thread_stop *stop, uint64_t addr, const void *from, size_t len)
    MUST_USE;

// Let the thread of a held target make `count` system calls, and stop it when it comes from the
// last one. ERR_LIMIT if it takes longer than `limit_ms`.
enum err thread_stop_let_call(struct thread_stop *stop, size_t count, uint32_t limit_ms) MUST_USE;

// Let stopped thread `index` run until done(context) says so, at most `limit_ms`, and stop it
// again. ERR_LIMIT if it takes longer.
enum err thread_stop_let_run(struct thread_stop *stop,
                             size_t index,
                             bool (*done)(void *context),
                             void *context,
                             uint32_t limit_ms) MUST_USE;
