// SPDX-License-Identifier: MIT
// confinement_hooks: the exported functions by which a program installs a seccomp filter.
//
// A filter may kill the process for any system call that the program does not make itself. So from
// the moment before it is installed no hook makes one (sys_forbid). Threads that record continue in
// the memory that they have, without waking the recorder, and wait for it by reading its clock.
// Threads and processes that begin under the filter are not recorded, and their events are counted.
// Before the filter the calling thread learns what it may need of its stack. libseccomp uses
// syscall(); a filter that is installed by an inline system call is not seen.
//
// The strict mode also takes the processor's clock from the calling thread: reading it is a
// SIGSEGV. A thread that stamps its events closes its lane before, and its later events are counted
// as lost. One that records alone goes on, and never stamps.
//
// All other uses of prctl and syscall are passed on by a jump, so that a caller of clone or vfork
// by syscall() gets its own return address. The file is compiled with -O2 in any build. Context: T,
// any caller.
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <sys/syscall.h>

#include "base/compiler.h"
#include "base/sys.h"
#include "target/preload/process/process.h"
#include "target/preload/process/thread_state.h"
#include "target/preload/real/real_process.h"

// Own prototypes: both functions pass their arguments on unseen.
EXPORT int prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d);
EXPORT long syscall(long number, long a, long b, long c, long d, long e, long f);

static void foresee(bool is_strict)
{
    struct thread_state *t = thread_way_state();
    if (process_session() == NULL || t == NULL || t->generation != process_generation()) {
        return;
    }
    unwind_thread_foresee(t->unwind);
    t->producer.is_clockless |= is_strict;
    if (is_strict && t->producer.is_ordered) {
        thread_state_close(t);
    }
}

static NOINLINE int
confine_by_prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
    const bool was_forbidden = sys_is_forbidden();
    foresee(a == SECCOMP_MODE_STRICT);
    sys_forbid(true);
    const int result = g_real_process.prctl(option, a, b, c, d);
    sys_forbid(was_forbidden || result >= 0);
    return result;
}

static NOINLINE long confine_by_syscall(long number, long a, long b, long c)
{
    const bool was_forbidden = sys_is_forbidden();
    foresee(number == SYS_seccomp ? a == SECCOMP_SET_MODE_STRICT : b == SECCOMP_MODE_STRICT);
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
