// SPDX-License-Identifier: MIT
// real_process: the next definitions of the functions that change the process: they execute another
// program, set a seccomp filter, set a limit, or end the process.
//
// Like real_mappings.h. The constructor looks them up; an earlier caller looks them up itself.
// Context: T. Failure: a function that libc does not have answers ENOSYS, as the kernel would.
#pragma once

#include <stddef.h>
#include <sys/types.h>

struct rlimit; // as in the kernel; libc's prototypes differ in the names of its types

// X(name, result type, parameters, arguments, the result where there is no real function)
#define PROCESS_FUNCTIONS(X)                                                                  \
    X(execve, int, (const char *path, char *const *argv, char *const *environment),           \
      (path, argv, environment), no_such_function())                                          \
    X(execvpe, int, (const char *name, char *const *argv, char *const *environment),          \
      (name, argv, environment), no_such_function())                                          \
    X(fexecve, int, (int fd, char *const *argv, char *const *environment),                    \
      (fd, argv, environment), no_such_function())                                            \
    X(execveat, int,                                                                          \
      (int folder, const char *path, char *const *argv, char *const *environment, int flags), \
      (folder, path, argv, environment, flags), no_such_function())                           \
    X(posix_spawn, int,                                                                       \
      (pid_t * pid, const char *path, const void *actions, const void *attributes,            \
       char *const *argv, char *const *environment),                                          \
      (pid, path, actions, attributes, argv, environment), ENOSYS)                            \
    X(posix_spawnp, int,                                                                      \
      (pid_t * pid, const char *name, const void *actions, const void *attributes,            \
       char *const *argv, char *const *environment),                                          \
      (pid, name, actions, attributes, argv, environment), ENOSYS)                            \
    X(prctl, int,                                                                             \
      (int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d),       \
      (option, a, b, c, d), no_such_function())                                               \
    X(syscall, long, (long number, long a, long b, long c, long d, long e, long f),           \
      (number, a, b, c, d, e, f), no_such_function())                                         \
    X(setrlimit, int, (unsigned resource, const struct rlimit *limit), (resource, limit),     \
      no_such_function())                                                                     \
    X(setrlimit64, int, (unsigned resource, const struct rlimit *limit), (resource, limit),   \
      no_such_function())                                                                     \
    X(prlimit, int,                                                                           \
      (pid_t pid, unsigned resource, const struct rlimit *limit, struct rlimit *old),         \
      (pid, resource, limit, old), no_such_function())                                        \
    X(prlimit64, int,                                                                         \
      (pid_t pid, unsigned resource, const struct rlimit *limit, struct rlimit *old),         \
      (pid, resource, limit, old), no_such_function())                                        \
    X(chroot, int, (const char *path), (path), no_such_function())                            \
    X(_exit, void, (int status), (status), (void)SYS_CALL(SYS_exit_group, status))

struct real_process {
#define X(name, result, parameters, arguments, answer) result(*name) parameters;
    PROCESS_FUNCTIONS(X)
#undef X
};

extern struct real_process g_real_process;

// Look them up, unless that was done before.
void real_process_resolve(void);
