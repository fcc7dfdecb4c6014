// SPDX-License-Identifier: MIT
// sys: see sys.h. The numbers come from <sys/syscall.h>; the convention from arch/*/syscall_arch.h.
#include "base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "base/clock.h"
#include "syscall_arch.h"

static struct {
    _Atomic bool is_forbidden;
} g_sys;

bool sys_is_forbidden(void)
{
    // Relaxed: a thread under a filter has set it itself, or was begun by such a thread.
    return atomic_load_explicit(&g_sys.is_forbidden, memory_order_relaxed);
}

void sys_forbid(bool is_forbidden)
{
    atomic_store_explicit(&g_sys.is_forbidden, is_forbidden, memory_order_relaxed);
}

long sys_call6(long number, long a, long b, long c, long d, long e, long f)
{
    return LIKELY(!sys_is_forbidden()) ? arch_syscall6(number, a, b, c, d, e, f) : -EPERM;
}

long sys_mmap(void *hint, size_t len_bytes, int prot, int flags, int fd, int64_t file_off)
{
    return sys_call6(SYS_mmap, (long)hint, (long)len_bytes, prot, flags, fd, file_off);
}

long sys_munmap(void *addr, size_t len_bytes)
{
    return SYS_CALL(SYS_munmap, (long)addr, (long)len_bytes);
}

long sys_madvise(void *addr, size_t len_bytes, int advice)
{
    return SYS_CALL(SYS_madvise, (long)addr, (long)len_bytes, advice);
}

long sys_mprotect(void *addr, size_t len_bytes, int prot)
{
    return SYS_CALL(SYS_mprotect, (long)addr, (long)len_bytes, prot);
}

// rt_sigprocmask copies the set in before it checks `how`. So an invalid `how` only tests whether
// the set can be read, and changes nothing: EFAULT means no, EINVAL means yes.
bool sys_is_readable(uint64_t addr)
{
    const long no_such_how = -1;
    const long set_bytes = 8;
    if (addr == 0) {
        return false; // rt_sigprocmask takes a null pointer for a missing set
    }
    return SYS_CALL(SYS_rt_sigprocmask, no_such_how, (long)addr, 0, set_bytes) == -EINVAL;
}

long sys_process_vm_readv(int pid,
                          const struct iovec *local,
                          size_t local_count,
                          const struct iovec *remote,
                          size_t remote_count)
{
    return SYS_CALL(SYS_process_vm_readv, pid, (long)local, (long)local_count, (long)remote,
                    (long)remote_count);
}

long sys_copy_own(void *to, uint64_t from, size_t len_bytes)
{
    const struct iovec local = {.iov_base = to, .iov_len = len_bytes};
    const struct iovec remote = {.iov_base = (void *)from, .iov_len = len_bytes};
    return sys_process_vm_readv(sys_getpid(), &local, 1, &remote, 1);
}

int sys_getpid(void)
{
    return (int)SYS_CALL(SYS_getpid);
}

uint64_t sys_highest_rss_kib(void)
{
    struct rusage usage = {0};
    const long result = SYS_CALL(SYS_getrusage, RUSAGE_SELF, (long)&usage);
    return sys_failed(result) || usage.ru_maxrss < 0 ? 0 : (uint64_t)usage.ru_maxrss;
}

int sys_getppid(void)
{
    return (int)SYS_CALL(SYS_getppid);
}

int sys_gettid(void)
{
    return (int)SYS_CALL(SYS_gettid);
}

long sys_futex_wait(const void *word, uint32_t expected, const struct timespec *timeout)
{
    return SYS_CALL(SYS_futex, (long)word, FUTEX_WAIT, expected, (long)timeout);
}

bool sys_has_word(uint64_t addr, uint32_t word)
{
    const struct timespec none = {0};
    long result;
    do { // a private futex: the memory may be read-only
        result =
            SYS_CALL(SYS_futex, (long)addr, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, word, (long)&none);
    } while (result == -EINTR);
    return result == -ETIMEDOUT || result == 0; // else it would not have waited
}

long sys_futex_wake(const void *word, int count)
{
    return SYS_CALL(SYS_futex, (long)word, FUTEX_WAKE, count);
}

long sys_open(const char *path, int flags, unsigned mode)
{
    return SYS_CALL(SYS_openat, AT_FDCWD, (long)path, flags | O_CLOEXEC, mode);
}

long sys_read(int fd, void *into, size_t len_bytes)
{
    return SYS_CALL(SYS_read, fd, (long)into, (long)len_bytes);
}

long sys_close(int fd)
{
    return SYS_CALL(SYS_close, fd);
}

long sys_readlink(const char *path, char *into, size_t len_bytes)
{
    return SYS_CALL(SYS_readlinkat, AT_FDCWD, (long)path, (long)into, (long)len_bytes);
}

long sys_fstat_size(int fd)
{
    struct stat status = {0};
    long result = SYS_CALL(SYS_fstat, fd, (long)&status);
    return sys_failed(result) ? result : (long)status.st_size;
}

uint64_t sys_monotonic_ns(void)
{
    struct timespec now = {.tv_sec = 0};
    (void)SYS_CALL(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&now); // fails only if forbidden
    return clock_to_ns(now);
}

long sys_kill(int pid, int signal)
{
    return SYS_CALL(SYS_kill, pid, signal);
}

long sys_tgkill(int pid, int tid, int signal)
{
    return SYS_CALL(SYS_tgkill, pid, tid, signal);
}

_Noreturn void sys_exit_group(int status)
{
    for (;;) {
        (void)SYS_CALL(SYS_exit_group, status);
    }
}

#define KERNEL_SIGSET_BYTES 8 // of x86-64 and AArch64; libc's sigset_t is larger

uint64_t signals_block(void)
{
    const uint64_t all = UINT64_MAX;
    uint64_t before = 0;
    // The kernel has no failure for these arguments.
    (void)SYS_CALL(SYS_rt_sigprocmask, SIG_BLOCK, (long)&all, (long)&before, KERNEL_SIGSET_BYTES);
    return before;
}

void signals_restore(uint64_t blocked_before)
{
    // The kernel has no failure for these arguments.
    (void)SYS_CALL(SYS_rt_sigprocmask, SIG_SETMASK, (long)&blocked_before, 0, KERNEL_SIGSET_BYTES);
}
