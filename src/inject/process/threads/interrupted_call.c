// SPDX-License-Identifier: MIT
#include "inject/process/threads/interrupted_call.h"

#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/compiler.h"
#include "host/text/number.h"
#include "host/text/proc_text.h"
#include "host/text/strbuf.h"
#include "inject/process/proc_files.h"
#include "inject/process/threads/thread_regs.h"

// For reading, writing and connecting this holds with SO_RCVTIMEO and SO_SNDTIMEO.
bool interrupted_call_returns_eintr(int64_t number)
{
    static const long numbers[] = {
        SYS_read,
        SYS_write,
        SYS_readv,
        SYS_writev,
        SYS_connect,
        SYS_accept,
        SYS_accept4,
        SYS_sendto,
        SYS_recvfrom,
        SYS_sendmsg,
        SYS_recvmsg,
        SYS_sendmmsg,
        SYS_recvmmsg,
        SYS_semop,
        SYS_semtimedop,
        THREAD_REGS_OLD_EINTR_CALLS SYS_epoll_pwait,
        SYS_epoll_pwait2,
        SYS_io_getevents,
        SYS_io_pgetevents,
        SYS_io_uring_enter,
        SYS_rt_sigtimedwait,
    };
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        if (numbers[i] == number) {
            return true;
        }
    }
    return false;
}

struct current_call interrupted_call_before(const struct target_process *target, int tid)
{
    const struct current_call call = proc_files_current_call(target, tid);
    if (!interrupted_call_returns_eintr(call.number)) {
        return call;
    }
    const uint64_t sleeps = proc_files_sleeps(target, tid); // before the call is read that counts
    struct current_call again = proc_files_current_call(target, tid);
    again.sleeps = sleeps;
    return again;
}

bool interrupted_call_expects_handler(const struct target_process *target, int tid)
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
