// SPDX-License-Identifier: MIT
// sys: the system calls that code inside a target may make, directly to the kernel.
//
// Each returns the kernel's result, or -errno in -4095..-1. They never touch errno and call no libc
// function, so a hook may use them at any moment, signal handlers included. None of them is a
// cancellation point.
//
// A seccomp filter of the program may kill it for any call that the program does not make itself.
// Once it has one, all functions return -EPERM without a system call. That is one flag (g_sys), for
// the process, and inherited by its children. Context: T and H.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

struct timespec;
struct iovec;

// Whether `result` of a call below is an error; the errno is then -result.
ALWAYS_INLINE bool sys_failed(long result)
{
    return (unsigned long)result >= (unsigned long)-4095L;
}

// Set whether system calls are forbidden from now on, to all threads of this process.
void sys_forbid(bool is_forbidden);
bool sys_is_forbidden(void);

// The raw call, for rare calls without a function here. SYS_CALL(number, ...) takes up to six
// arguments; the rest are 0.
long sys_call6(long number, long a, long b, long c, long d, long e, long f);
#define SYS_CALL(...) SYS_CALL_FILLED(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)

#define SYS_CALL_FILLED(number, a, b, c, d, e, f, unused...) sys_call6(number, a, b, c, d, e, f)

// Memory. sys_mmap returns an address or -errno.
long sys_mmap(void *hint, size_t len_bytes, int prot, int flags, int fd, int64_t file_off);
long sys_munmap(void *addr, size_t len_bytes);
long sys_madvise(void *addr, size_t len_bytes, int advice);
long sys_mprotect(void *addr, size_t len_bytes, int prot);

// Whether the 8 bytes at `addr` can be read. Does not read them into this process's registers; the
// only side effect is that their page is faulted in.
bool sys_is_readable(uint64_t addr);

// Whether the 4 bytes at `addr`, a multiple of 4, can be read and are `word`. The kernel compares
// them: another thread may unmap them at any time.
bool sys_has_word(uint64_t addr, uint32_t word);

// Copy from this process's own memory; parts may be unmapped. Returns the number of bytes
// up to the first missing one, -EFAULT for none. Other errors: the kernel does not support this
// here.
long sys_copy_own(void *to, uint64_t from, size_t len_bytes);

// process_vm_readv(2). A seccomp filter may forbid it: only for sys_copy_own(), not for hooks.
long sys_process_vm_readv(int pid,
                          const struct iovec *local,
                          size_t local_count,
                          const struct iovec *remote,
                          size_t remote_count);

// Identity.
int sys_getpid(void);
int sys_getppid(void);
int sys_gettid(void);

// Return the highest resident memory of the process, and of the images before it, in KiB; 0 if
// unknown.
uint64_t sys_highest_rss_kib(void);

// Sleep while *word == expected, on a futex shared between processes; `word` points to an atomic
// of 32 bits. A NULL timeout waits without end.
long sys_futex_wait(const void *word, uint32_t expected, const struct timespec *timeout);
long sys_futex_wake(const void *word, int count);

// Files. Every descriptor is opened close-on-exec.
long sys_open(const char *path, int flags, unsigned mode);
long sys_read(int fd, void *into, size_t len_bytes);
long sys_close(int fd);
long sys_readlink(const char *path, char *into, size_t len_bytes);
long sys_fstat_size(int fd); // the file's size in bytes

// Return the monotonic clock; 0 once system calls are forbidden.
uint64_t sys_monotonic_ns(void);

long sys_kill(int pid, int signal);
long sys_tgkill(int pid, int tid, int signal);
_Noreturn void sys_exit_group(int status);

// A short stretch without signal handlers. Unlike pthread_sigmask this also blocks the signals that
// libc reserves for itself (cancellation). Block every signal and return the previously blocked
// ones.
uint64_t signals_block(void);
void signals_restore(uint64_t blocked_before);
