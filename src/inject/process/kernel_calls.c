// SPDX-License-Identifier: MIT
#include "inject/process/kernel_calls.h"

#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

static long call_ptrace(int request, int tid, void *addr, void *data)
{
    return ptrace((enum __ptrace_request)request, tid, addr, data);
}

static int call_wait(int tid, int *status, int options)
{
    return waitpid(tid, status, options);
}

static int call_open(const char *path, int flags)
{
    return open(path, flags | O_CLOEXEC);
}

const struct kernel_calls kernel_calls_real = {.ptrace = call_ptrace,
                                               .wait = call_wait,
                                               .open = call_open,
                                               .read_at = pread,
                                               .write_at = pwrite};
