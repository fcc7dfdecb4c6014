// SPDX-License-Identifier: MIT
// confinement_hooks: the exported functions by which a program puts a seccomp filter over itself.
//
// A filter may kill the process for any system call that the program does not make itself. So from
// the moment before it is set no hook makes one (sys_forbid): threads that record go on in the
// memory that they have, without waking the recorder, and wait for it by looking at its clock;
// threads and processes that begin under the filter are not recorded, and their events counted.
// What the calling thread may still need of its stack is learned before. libseccomp comes through
// syscall(); a filter that is set by an inline system call is not seen.
//
// Everything else that goes through prctl and syscall is passed on by a jump, so that whoever calls
// clone or vfork by syscall() returns to where he was called from. The file is compiled with -O2 in
// any build. Context: T, whoever calls.
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <sys/syscall.h>

#include "base/compiler.h"
#include "base/sys.h"
#include "target/preload/process/process.h"
#include "target/preload/process/thread_state.h"
#include "target/preload/real/real_process.h"

// Own prototypes: both take what they are given, and pass it on unseen.
EXPORT int prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d);
EXPORT long syscall(long number, long a, long b, long c, long d, long e, long f);

static void foresee(void)
{
    struct thread_state *t = t_thread_state;
    if (process_session() != NULL && t != NULL && t->generation == process_generation()) {
        unwind_thread_foresee(t->unwind);
    }
}

static NOINLINE int
confine_by_prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
    const bool was_forbidden = sys_is_forbidden();
    foresee();
    sys_forbid(true);
    const int result = g_real_process.prctl(option, a, b, c, d);
    sys_forbid(was_forbidden || result >= 0);
    return result;
}

static NOINLINE long confine_by_syscall(long number, long a, long b, long c)
{
    const bool was_forbidden = sys_is_forbidden();
    foresee();
    sys_forbid(true);
    const long result = g_real_process.syscall(number, a, b, c, 0, 0, 0);
    sys_forbid(was_forbidden || result >= 0);
    return result;
}

EXPORT int prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
    if (UNLIKELY(option == PR_SET_SECCOMP)) {
        return confine_by_prctl(option, a, b, c, d);
    }
    return g_real_process.prctl(option, a, b, c, d);
}

static bool sets_filter(long number, long a)
{
    return (number == SYS_seccomp &&
            (a == SECCOMP_SET_MODE_STRICT || a == SECCOMP_SET_MODE_FILTER)) ||
           (number == SYS_prctl && a == PR_SET_SECCOMP);
}

EXPORT long syscall(long number, long a, long b, long c, long d, long e, long f)
{
    if (UNLIKELY(sets_filter(number, a))) {
        return confine_by_syscall(number, a, b, c);
    }
    return g_real_process.syscall(number, a, b, c, d, e, f);
}
