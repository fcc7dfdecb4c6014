// SPDX-License-Identifier: MIT
// thread_regs_arch (x86-64): the registers of a stopped thread; see thread_regs.h.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>

#include "base/compiler.h"
#include "base/err.h"
#include "inject/process/target_process.h"

#define THREAD_REGS_READ \
    PTRACE_GETREGS // with the view of a 64-bit process, whatever the thread runs

// System calls that return EINTR after a stop and that newer machines do not have.
#define THREAD_REGS_OLD_EINTR_CALLS SYS_epoll_wait,

// Whether a call that returns EINTR has lost its first argument.
#define THREAD_REGS_LOSES_ARGUMENT false

// System calls by which a parent waits for its child, and that newer machines do not have.
#define THREAD_REGS_OLD_FORK_CALLS SYS_vfork,

enum {
    USER_CODE_SEGMENT = 0x33,
};

ALWAYS_INLINE long
thread_regs_read(const struct kernel_calls *calls, int tid, struct user_regs_struct *regs)
{
    return calls->ptrace(PTRACE_GETREGS, tid, NULL, regs);
}

ALWAYS_INLINE long
thread_regs_write(const struct kernel_calls *calls, int tid, struct user_regs_struct *regs)
{
    return calls->ptrace(PTRACE_SETREGS, tid, NULL, regs);
}

ALWAYS_INLINE uint64_t thread_regs_pc(const struct user_regs_struct *regs)
{
    return regs->rip;
}

ALWAYS_INLINE uint64_t thread_regs_sp(const struct user_regs_struct *regs)
{
    return regs->rsp;
}

ALWAYS_INLINE void thread_regs_go_to(struct user_regs_struct *regs, uint64_t pc)
{
    regs->rip = pc;
}

ALWAYS_INLINE void thread_regs_forget_call(struct user_regs_struct *regs)
{
    regs->orig_rax = UINT64_MAX;
}

ALWAYS_INLINE bool thread_regs_is_in_call(const struct user_regs_struct *regs)
{
    return (int64_t)regs->orig_rax >= 0;
}

// A thread may run 32-bit code in a 64-bit process.
ALWAYS_INLINE bool thread_regs_may_call(const struct target_process *target,
                                        int tid,
                                        const struct user_regs_struct *regs)
{
    (void)target; // the kernel keeps every register over a system call
    (void)tid;
    return regs->cs == USER_CODE_SEGMENT;
}

ALWAYS_INLINE enum err thread_regs_return(const struct target_process *target,
                                          struct user_regs_struct *regs)
{
    TRY(target_process_read(target, regs->rsp, &regs->rip, sizeof(regs->rip)));
    regs->rsp += sizeof(regs->rip);
    return ERR_OK;
}
