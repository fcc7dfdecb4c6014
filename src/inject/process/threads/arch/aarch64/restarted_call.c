// SPDX-License-Identifier: MIT
// restarted_call (AArch64): what interrupted_call.h does to registers.
//
// The kernel has looked at the result of an interrupted call before the tracer sees the thread, and
// has forgotten the call (thread_regs_arch.h). A call that is to be made again has its registers
// back. A call that returns EINTR has its number in x8 and its arguments in x1 to x5, but the
// result is in x0. So the first argument is the one that the thread's call had before it was
// interrupted. That it is the same call, and not the next one from the same place with another
// first argument, say program counter, stack pointer and the number of its sleeps: a thread that
// was in a call then, and is in another one now, has slept once more.
#include <errno.h>
#include <stdint.h>

#include "inject/process/threads/interrupted_call.h"
#include "inject/process/threads/thread_regs.h"

enum {
    SVC = 0xd4000001u, // svc #0
    SVC_BYTES = 4,
};

static bool is_behind_call(const struct target_process *target, uint64_t pc)
{
    uint32_t word = 0;
    return target_process_read(target, pc - SVC_BYTES, &word, sizeof(word)) == ERR_OK &&
           word == SVC;
}

bool interrupted_call_restart(const struct target_process *target,
                              int tid,
                              const struct current_call *before,
                              struct user_regs_struct *regs)
{
    const int64_t number = (int64_t)regs->regs[8];
    if ((int64_t)regs->regs[0] != -EINTR || before->number != number || before->pc != regs->pc ||
        before->sp != regs->sp || !interrupted_call_returns_eintr(number) ||
        !is_behind_call(target, regs->pc) || interrupted_call_expects_handler(target, tid) ||
        proc_files_sleeps(target, tid) != before->sleeps) {
        return false;
    }
    regs->regs[0] = before->first_argument;
    regs->pc -= SVC_BYTES;
    return true;
}

bool interrupted_call_repeat(struct user_regs_struct *regs)
{
    (void)regs; // which call would be continued cannot be seen
    return false;
}

void interrupted_call_rewind(struct user_regs_struct *regs)
{
    (void)regs; // the kernel has done so
}
