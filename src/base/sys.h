// SPDX-License-Identifier: MIT
// sys: the system calls that code inside a target may make, straight to the kernel.
//
// Each returns the kernel's own answer: a result, or -errno in -4095..-1; errno is never touched
// and no libc function is called, so that a hook may use them at any moment, signal handlers
// included. Nothing here is a cancellation point.
//
// Once the program has put a seccomp filter over itself, which may kill it for any call that it
// does not make itself, all of them answer -EPERM and the kernel is not called. That is one flag
// (g_sys), for the process, and inherited by its children. Context: T and H.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

struct timespec;
struct iovec;

// True if `result`, as a call below returned it, is an error; the errno is then -result.
ALWAYS_INLINE bool sys_failed(long result)
{
    return (unsigned long)result >= (unsigned long)-4095L;
}

// Whether system calls are forbidden from now on, to all threads of this process.
void sys_forbid(bool is_forbidden);
bool sys_is_forbidden(void);

// The raw call, for the rare one that has no function here.
long sys_call6(long number, long a, long b, long c, long d, long e, long f);

// Memory. sys_mmap returns an address or -errno.
long sys_mmap(void *hint, size_t len_bytes, int prot, int flags, int fd, int64_t file_off);
long sys_munmap(void *addr, size_t len_bytes);
long sys_madvise(void *addr, size_t len_bytes, int advice);
long sys_mprotect(void *addr, size_t len_bytes, int prot);

// True if the 8 bytes at `addr` can be read. Does not read them into this process's registers, and
// has no side effect but to fault their page in.
bool sys_is_readable(uint64_t addr);

// Copies from this process's own memory, some of which may be gone: the bytes that were there up to
// the first that was not, -EFAULT for none. Other errors: the kernel does not do this here.
long sys_copy_own(void *to, uint64_t from, size_t len_bytes);

// As process_vm_readv(2). A seccomp filter may forbid it: not for hooks, but for sys_copy_own().
long sys_process_vm_readv(int pid,
                          const struct iovec *local,
                          size_t local_count,
                          const struct iovec *remote,
                          size_t remote_count);

// Identity.
int sys_getpid(void);
int sys_getppid(void);
int sys_gettid(void);

// Sleeps while *word == expected, on a futex shared between processes; NULL waits for ever.
long sys_futex_wait(const uint32_t *word, uint32_t expected, const struct timespec *timeout);
long sys_futex_wake(const uint32_t *word, int count);

// Files. Every descriptor is opened close-on-exec.
long sys_open(const char *path, int flags, unsigned mode);
long sys_read(int fd, void *into, size_t len_bytes);
long sys_write(int fd, const void *from, size_t len_bytes);
long sys_close(int fd);
long sys_readlink(const char *path, char *into, size_t len_bytes);
long sys_fstat_size(int fd); // the file's size in bytes

// The monotonic clock; 0 once system calls are forbidden.
uint64_t sys_monotonic_ns(void);

long sys_kill(int pid, int signal);
long sys_tgkill(int pid, int tid, int signal);
_Noreturn void sys_exit_group(int status);
