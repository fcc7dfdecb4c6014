// SPDX-License-Identifier: MIT
// restarted_call (x86-64): what interrupted_call.h does to registers. The kernel looks at the
// result of an interrupted call when the thread goes on.
#include <errno.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "inject/process/threads/interrupted_call.h"

// include/linux/errno.h of the kernel; programs never see them.
enum {
    KERNEL_RESTARTSYS = 512,
    KERNEL_RESTARTNOINTR = 513,
    KERNEL_RESTARTNOHAND = 514,
    KERNEL_RESTART_RESTARTBLOCK = 516,
    SYSCALL_BYTES = 2, // of the instruction
};

bool interrupted_call_restart(const struct target_process *target,
                              int tid,
                              const struct current_call *before,
                              struct user_regs_struct *regs)
{
    (void)before; // the registers say all
    if ((int64_t)regs->rax != -EINTR || !interrupted_call_returns_eintr((int64_t)regs->orig_rax) ||
        interrupted_call_expects_handler(target, tid)) {
        return false;
    }
    regs->rax = regs->orig_rax;
    regs->rip -= SYSCALL_BYTES;
    return true;
}

bool interrupted_call_repeat(struct user_regs_struct *regs)
{
    if ((int64_t)regs->orig_rax < 0 || -(int64_t)regs->rax != KERNEL_RESTART_RESTARTBLOCK) {
        return false;
    }
    regs->rax = regs->orig_rax;
    regs->rip -= SYSCALL_BYTES;
    return true;
}

void interrupted_call_rewind(struct user_regs_struct *regs)
{
    if ((int64_t)regs->orig_rax < 0) {
        return; // not in a call
    }
    switch (-(int64_t)regs->rax) {
    case KERNEL_RESTARTSYS:
    case KERNEL_RESTARTNOINTR:
    case KERNEL_RESTARTNOHAND:
        regs->rax = regs->orig_rax;
        regs->rip -= SYSCALL_BYTES;
        break;
    case KERNEL_RESTART_RESTARTBLOCK:
        regs->rax = SYS_restart_syscall;
        regs->rip -= SYSCALL_BYTES;
        break;
    default: // the call has ended
        break;
    }
    regs->orig_rax = (uint64_t)-1;
}
