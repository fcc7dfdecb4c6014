// SPDX-License-Identifier: MIT
// thread_regs_arch (AArch64): the registers of a stopped thread; see thread_regs.h.
//
// The kernel looks at the result of a system call before a tracer sees the thread: a call that is
// to be made again has its first argument back in x0, and the program counter is at its svc
// (arch/arm64/kernel/signal.c, do_signal). It has forgotten the call's number by then, but x8 still
// has it.
#pragma once

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

#include "base/compiler.h"
#include "base/err.h"
#include "inject/process/target_process.h"

#define THREAD_REGS_READ PTRACE_GETREGSET

// System calls that return EINTR after a stop and that newer machines do not have.
#define THREAD_REGS_OLD_EINTR_CALLS

// Whether a call that returns EINTR has lost its first argument.
#define THREAD_REGS_LOSES_ARGUMENT true

// System calls by which a parent waits for its child, and that newer machines do not have.
#define THREAD_REGS_OLD_FORK_CALLS

enum {
    THREAD_REGS_PSTATE_BTYPE = 0xc00,  // the next instruction must be a landing pad
    THREAD_REGS_PSTATE_MODE32 = 0x10,  // the thread runs 32-bit code
    THREAD_REGS_SSVE = 0x40b,          // NT_ARM_SSVE, which older headers lack
    THREAD_REGS_SVE_FLAG_IS_SVE = 0x1, // SVE_PT_REGS_SVE of asm/ptrace.h
};

// struct user_sve_header of asm/ptrace.h.
struct thread_regs_sve {
    uint32_t size;
    uint32_t max_size;
    uint16_t vector_bytes;
    uint16_t max_vector_bytes;
    uint16_t flags;
    uint16_t reserved;
};

ALWAYS_INLINE long thread_regs_transfer(
    const struct kernel_calls *calls, int request, int tid, uintptr_t kind, void *set, size_t bytes)
{
    struct iovec place = {.iov_base = set, .iov_len = bytes};
    return calls->ptrace(request, tid, (void *)kind, &place);
}

ALWAYS_INLINE long
thread_regs_read(const struct kernel_calls *calls, int tid, struct user_regs_struct *regs)
{
    return thread_regs_transfer(calls, PTRACE_GETREGSET, tid, NT_PRSTATUS, regs, sizeof(*regs));
}

ALWAYS_INLINE long
thread_regs_write(const struct kernel_calls *calls, int tid, struct user_regs_struct *regs)
{
    return thread_regs_transfer(calls, PTRACE_SETREGSET, tid, NT_PRSTATUS, regs, sizeof(*regs));
}

ALWAYS_INLINE uint64_t thread_regs_pc(const struct user_regs_struct *regs)
{
    return regs->pc;
}

ALWAYS_INLINE uint64_t thread_regs_sp(const struct user_regs_struct *regs)
{
    return regs->sp;
}

ALWAYS_INLINE void thread_regs_go_to(struct user_regs_struct *regs, uint64_t pc)
{
    regs->pc = pc;
    regs->pstate &= ~(uint64_t)THREAD_REGS_PSTATE_BTYPE;
}

ALWAYS_INLINE void thread_regs_forget_call(struct user_regs_struct *regs)
{
    (void)regs; // the kernel has done so
}

ALWAYS_INLINE bool thread_regs_is_in_call(const struct user_regs_struct *regs)
{
    (void)regs;
    return false;
}

// Whether the registers of a set are in use that the kernel empties at a system call.
ALWAYS_INLINE bool
thread_regs_has_vectors(const struct target_process *target, int tid, uintptr_t kind)
{
    struct thread_regs_sve head = {0};
    return thread_regs_transfer(target->calls, PTRACE_GETREGSET, tid, kind, &head, sizeof(head)) ==
               0 &&
           (head.flags & THREAD_REGS_SVE_FLAG_IS_SVE) != 0;
}

// A system call ends SVE's registers beyond the first 128 bits, and SME's streaming mode
// (Documentation/arm64/sve.rst). A thread that has something there is left alone.
ALWAYS_INLINE bool thread_regs_may_call(const struct target_process *target,
                                        int tid,
                                        const struct user_regs_struct *regs)
{
    return (regs->pstate & THREAD_REGS_PSTATE_MODE32) == 0 &&
           !thread_regs_has_vectors(target, tid, NT_ARM_SVE) &&
           !thread_regs_has_vectors(target, tid, THREAD_REGS_SSVE);
}

ALWAYS_INLINE enum err thread_regs_return(const struct target_process *target,
                                          struct user_regs_struct *regs)
{
    (void)target; // the return address is in a register
    regs->pc = regs->regs[30];
    return ERR_OK;
}
