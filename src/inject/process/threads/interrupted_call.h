// SPDX-License-Identifier: MIT
// interrupted_call: system calls that a tracer's stop makes fail, though no signal came.
//
// Most interrupted calls are restarted by the kernel when the thread goes on. Some return EINTR
// instead, because a handler of a signal must be able to end them, and the kernel decides that
// before it knows whether there is a handler: signal(7), "Interruption of system calls and library
// functions by stop signals". A thread in which a handler has been set up has other registers and
// is not touched; a caught signal that waits sees EINTR too. A call with a timeout begins to wait
// anew. Context: H.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/user.h>

#include "inject/process/proc_files.h"
#include "inject/process/target_process.h"

// Return whether a system call is of this kind.
bool interrupted_call_returns_eintr(int64_t number);

// Whether a handler is about to run, which must see the call fail with EINTR.
bool interrupted_call_expects_handler(const struct target_process *target, int tid);

// Return which call a thread is in before it is interrupted. If it is of this kind, `sleeps` says
// later whether the thread is still in it.
struct current_call interrupted_call_before(const struct target_process *target, int tid);

// Whether the registers of a stopped thread are those of such a call. Then change them so that the
// thread makes the call again. `before` is what it was in before it was interrupted; on AArch64
// only that has the first argument, which the result has replaced.
bool interrupted_call_restart(const struct target_process *target,
                              int tid,
                              const struct current_call *before,
                              struct user_regs_struct *regs);

// Whether the registers of a stopped thread are those of a call that the kernel would continue by
// restart_syscall(2), which a seccomp filter may forbid: nanosleep, poll, a futex with a timeout.
// Then change them so that the thread makes the call itself again; it waits anew. Never on AArch64,
// where the registers do not say it.
bool interrupted_call_repeat(struct user_regs_struct *regs);

// Change the registers to the values that the kernel would give the thread when it goes on: a
// thread that is stopped in a system call makes it again (signal(7), "Interruption of system
// calls"). Needed only if the thread is to go on somewhere else first.
void interrupted_call_rewind(struct user_regs_struct *regs);
