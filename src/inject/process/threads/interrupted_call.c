// SPDX-License-Identifier: MIT
#include "inject/process/threads/interrupted_call.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/compiler.h"
#include "host/text/number.h"
#include "host/text/proc_text.h"
#include "host/text/strbuf.h"
#include "inject/process/proc_files.h"

// include/linux/errno.h of the kernel; programs never see them.
enum {
    KERNEL_RESTARTSYS = 512,
    KERNEL_RESTARTNOINTR = 513,
    KERNEL_RESTARTNOHAND = 514,
    KERNEL_RESTART_RESTARTBLOCK = 516,
    SYSCALL_BYTES = 2, // of the instruction
};

// For reading, writing and connecting this holds with SO_RCVTIMEO and SO_SNDTIMEO.
bool interrupted_call_returns_eintr(int64_t number)
{
    static const long numbers[] = {
        SYS_read,           SYS_write,           SYS_readv,        SYS_writev,
        SYS_connect,        SYS_accept,          SYS_accept4,      SYS_sendto,
        SYS_recvfrom,       SYS_sendmsg,         SYS_recvmsg,      SYS_sendmmsg,
        SYS_recvmmsg,       SYS_semop,           SYS_semtimedop,   SYS_epoll_wait,
        SYS_epoll_pwait,    SYS_epoll_pwait2,    SYS_io_getevents, SYS_io_pgetevents,
        SYS_io_uring_enter, SYS_rt_sigtimedwait,
    };
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        if (numbers[i] == number) {
            return true;
        }
    }
    return false;
}

// Whether a handler is about to run, which must see the call fail with EINTR.
static bool expects_handler(const struct target_process *target, int tid)
{
    CLEANUP(strbuf_release) struct strbuf status = {0};
    if (proc_files_read(target, tid, "status", &status, NULL) != ERR_OK) {
        return true;
    }
    static const char *const keys[] = {"SigPnd", "ShdPnd", "SigBlk", "SigCgt"};
    uint64_t masks[ARRAY_LEN(keys)] = {0};
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        const char *value = proc_text_value(strbuf_text(&status), keys[i]);
        value = value != NULL ? value + strspn(value, " \t") : "";
        (void)number_take(&value, 16, &masks[i]); // 0 if the kernel has no such line
    }
    return ((masks[0] | masks[1]) & ~masks[2] & masks[3]) != 0;
}

bool interrupted_call_restart(const struct target_process *target,
                              int tid,
                              struct user_regs_struct *regs)
{
    if ((int64_t)regs->rax != -EINTR || !interrupted_call_returns_eintr((int64_t)regs->orig_rax) ||
        expects_handler(target, tid)) {
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
