// SPDX-License-Identifier: MIT
// confinement_hooks: the exported functions by which a program installs a seccomp filter, or takes
// files away from itself.
//
// A filter may kill the process for any system call that the program does not make itself. So from
// the moment before it is installed no hook makes one (sys_forbid). Threads that record continue in
// the memory that they have, without waking the recorder, and wait for it by reading its clock.
// Threads and processes that begin under the filter are not recorded, and their events are counted.
// Before the filter the calling thread learns what it may need of its stack. libseccomp uses
// syscall(); a filter that is installed by an inline system call is not seen.
//
// libc executes programs by calls that pass no hook, with `environ` (system, popen, wordexp). Under
// a filter the system calls of our library could kill them, and where it cannot be opened (chroot,
// Landlock), the loader reports that in their output. So our variables leave `environ`. The hooks
// of exec put them back where that helps (exec_plan.h).
//
// A program that syscall() executes passes the hooks of the functions for that (exec_hooks.c). All
// other uses of prctl and syscall are passed on by a jump, so that a caller of clone or vfork
// by syscall() gets its own return address. The file is compiled with -O2 in any build. Context: T,
// any caller.
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "base/compiler.h"
#include "target/preload/exports/exec_plan.h"
#include "target/preload/process/confinement.h"
#include "target/preload/process/process.h"
#include "target/preload/real/environment.h"
#include "target/preload/real/real_process.h"
#include "target/preload/record/record_guard.h"

// Own prototypes: both functions pass their arguments on unseen.
EXPORT int prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d);
EXPORT long syscall(long number, long a, long b, long c, long d, long e, long f);
EXPORT int chroot(const char *path);
EXPORT int execve(const char *path, char *const *argv, char *const *environment);
EXPORT int
execveat(int folder, const char *path, char *const *argv, char *const *environment, int flags);
extern char **environ;

// Whether `environ` is this process's own. A child of vfork has its parent's.
static bool has_own_environment(void)
{
    return process_session() == NULL || process_is_this();
}

// After the filter's installation.
static void end_confinement(bool was_forbidden, bool has_succeeded, bool has_own)
{
    confinement_end(was_forbidden, has_succeeded);
    if (has_succeeded && has_own) {
        environment_strip();
    }
}

static NOINLINE int
confine_by_prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
    const bool has_own = has_own_environment();
    guard_prepare();
    const bool was_forbidden = confinement_begin();
    const int result = g_real_process.prctl(option, a, b, c, d);
    end_confinement(was_forbidden, result >= 0, has_own);
    return result;
}

static NOINLINE long confine_by_syscall(long number, long a, long b, long c)
{
    const bool has_own = has_own_environment();
    guard_prepare();
    const bool was_forbidden = confinement_begin();
    const long result = g_real_process.syscall(number, a, b, c, 0, 0, 0);
    end_confinement(was_forbidden, result >= 0, has_own);
    return result;
}

// Take our variables out of `environ` if what they name is out of reach now.
static void see_reach(void)
{
    if (has_own_environment() && !exec_plan_may_join(environ)) {
        environment_strip();
    }
}

EXPORT int chroot(const char *path)
{
    const int result = g_real_process.chroot(path);
    if (result == 0) {
        see_reach();
    }
    return result;
}

static NOINLINE long move_by_syscall(long number, long a, long b)
{
    const long result = g_real_process.syscall(number, a, b, 0, 0, 0, 0);
    if (result == 0) {
        see_reach();
    }
    return result;
}

EXPORT int prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
    if (UNLIKELY(confinement_is_prctl((uint64_t)option, a, b))) {
        return confine_by_prctl(option, a, b, c, d);
    }
    return g_real_process.prctl(option, a, b, c, d);
}

static bool takes_files_away(long number)
{
    return number == SYS_chroot || number == SYS_pivot_root || number == SYS_landlock_restrict_self;
}

EXPORT long syscall(long number, long a, long b, long c, long d, long e, long f)
{
    if (UNLIKELY(confinement_is_syscall((uint64_t)number, (uint64_t)a, (uint64_t)b, (uint64_t)c))) {
        return confine_by_syscall(number, a, b, c);
    }
    if (UNLIKELY(takes_files_away(number))) {
        return move_by_syscall(number, a, b);
    }
    if (UNLIKELY(number == SYS_execve)) {
        return execve((const char *)a, (char *const *)b, (char *const *)c);
    }
    if (UNLIKELY(number == SYS_execveat)) {
        return execveat((int)a, (const char *)b, (char *const *)c, (char *const *)d, (int)e);
    }
    return g_real_process.syscall(number, a, b, c, d, e, f);
}
