// SPDX-License-Identifier: MIT
// failing_follow: a library for the recorder, in which one call to the kernel fails while it puts
// its agent into a program that a recorded process executes. Only the threads that follow an exec
// use ptrace, and from then on their calls count: ptrace, waitpid, open, pread, pwrite.
//
// FAILING_CALL is the number of the call that fails, and is not made; 0: none. FAILING_COUNT is a
// file with room for the number of calls. The recorded program gets neither library nor variables.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/wait.h>

static _Atomic uint64_t *g_made;
static uint64_t g_failing;
static _Thread_local bool g_follows;
static long (*g_ptrace)(enum __ptrace_request, ...);
static pid_t (*g_waitpid)(pid_t, int *, int);
static int (*g_open)(const char *, int, ...);
static ssize_t (*g_pread)(int, void *, size_t, off_t);
static ssize_t (*g_pwrite)(int, const void *, size_t, off_t);

__attribute__((constructor)) static void begin(void)
{
    g_ptrace = dlsym(RTLD_NEXT, "ptrace");
    g_waitpid = dlsym(RTLD_NEXT, "waitpid");
    g_open = dlsym(RTLD_NEXT, "open");
    g_pread = dlsym(RTLD_NEXT, "pread");
    g_pwrite = dlsym(RTLD_NEXT, "pwrite");
    const int fd = g_open(getenv("FAILING_COUNT"), O_RDWR);
    void *memory = mmap(NULL, sizeof(*g_made), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd < 0 || memory == MAP_FAILED) {
        abort();
    }
    g_made = memory;
    g_failing = strtoull(getenv("FAILING_CALL"), NULL, 10);
    unsetenv("LD_PRELOAD");
    unsetenv("FAILING_COUNT");
    unsetenv("FAILING_CALL");
}

static bool fails(void)
{
    if (!g_follows || atomic_fetch_add(g_made, 1) + 1 != g_failing) {
        return false;
    }
    const int errors[] = {EIO, EPERM, ESRCH};
    errno = errors[g_failing % 3];
    return true;
}

long ptrace(enum __ptrace_request request, ...)
{
    va_list arguments;
    va_start(arguments, request);
    const pid_t pid = va_arg(arguments, pid_t);
    void *addr = va_arg(arguments, void *);
    void *data = va_arg(arguments, void *);
    va_end(arguments);
    g_follows = true;
    return fails() ? -1 : g_ptrace(request, pid, addr, data);
}

pid_t waitpid(pid_t pid, int *status, int options)
{
    return fails() ? -1 : g_waitpid(pid, status, options);
}

int open(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    const unsigned mode = (flags & O_CREAT) != 0 ? va_arg(arguments, unsigned) : 0;
    va_end(arguments);
    return fails() ? -1 : g_open(path, flags, mode);
}

ssize_t pread(int fd, void *into, size_t len, off_t at)
{
    return fails() ? -1 : g_pread(fd, into, len, at);
}

ssize_t pwrite(int fd, const void *from, size_t len, off_t at)
{
    return fails() ? -1 : g_pwrite(fd, from, len, at);
}
