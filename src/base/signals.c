// SPDX-License-Identifier: MIT
#include "base/signals.h"

#include <signal.h>
#include <sys/syscall.h>

#include "base/sys.h"

#define KERNEL_SIGSET_BYTES 8 // of x86-64 and AArch64; libc's sigset_t is larger

uint64_t signals_block(void)
{
    const uint64_t all = UINT64_MAX;
    uint64_t before = 0;
    (void)SYS_CALL(SYS_rt_sigprocmask, SIG_BLOCK, (long)&all, (long)&before,
                   KERNEL_SIGSET_BYTES); // see the module comment
    return before;
}

void signals_restore(uint64_t blocked_before)
{
    (void)SYS_CALL(SYS_rt_sigprocmask, SIG_SETMASK, (long)&blocked_before, 0,
                   KERNEL_SIGSET_BYTES); // see the module comment
}
