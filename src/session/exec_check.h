// SPDX-License-Identifier: MIT
// exec_check: finds out whether a program can be recorded, and if not, why, before it is executed.
//
// It follows the interpreters of scripts as the kernel does and reads the head of the ELF file
// behind them: class and machine, interpreter (PT_INTERP), needed libraries (DT_NEEDED) and whether
// the file changes the identity. A static program cannot load a preloaded library. The library
// would break a program of another libc (musl) and one with a sanitizer, whose library has to be
// the first. In a 32-bit program the loader would complain about it.
//
// The target's exec hooks call it, also in children of vfork, and the recorder calls it for the
// program that it starts. Trust: the file may contain anything; each offset is a position for
// pread, so nothing out of bounds can be reached, and all loops are capped. Context: T and H; raw
// system calls only, async-signal-safe, errno kept, no memory but the stack. Failure: an unreadable
// file has no obstacle, so that it is executed, and execve reports the error.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"

// X(name, key as in JSON, phrase for people). The reason why an exec goes unrecorded: the file
// itself, its environment, or the place where it is executed.
#define EXEC_OBSTACLES(X)                                                                  \
    X(NONE, "", "")                                                                        \
    X(STATIC, "static", "static executable")                                               \
    X(BITS32, "bits32", "32-bit program")                                                  \
    X(MACHINE, "machine", "built for another kind of processor")                           \
    X(LIBC, "libc", "built for another libc than glibc (musl)")                            \
    X(SANITIZER, "sanitizer", "built with a sanitizer")                                    \
    X(IDENTITY, "identity", "changes its identity (setuid, setgid, capabilities)")         \
    X(ENVIRONMENT, "environment", "started without LD_PRELOAD")                            \
    X(LIBRARY, "library", "where cairn's library is not, or not any more")                 \
    X(UNREACHABLE, "unreachable", "in namespaces from which the recorder is out of reach") \
    X(SECCOMP, "seccomp", "under a seccomp filter")                                        \
    X(AGENT, "agent", "started by a process that is recorded without a preloaded library") \
    X(INLINE, "inline", "executed by a system call that is not libc's")

enum exec_obstacle {
#define X(name, key, phrase) EXEC_##name,
    EXEC_OBSTACLES(X)
#undef X
    EXEC_OBSTACLE_COUNT
};

// Check the file that the kernel executes in the end: `path` itself, or the interpreter of that
// script. EXEC_NONE: the file shows no obstacle.
enum exec_obstacle exec_check(const char *path);

// Whether `path` is the loader of shared libraries itself, whatever its name (/usr/bin/ld.so),
// which runs the program that its arguments name.
bool exec_check_is_loader(const char *path);

// Find `name` as execvp(3) does: without a slash along `search` (the value of PATH; NULL: the
// default). False: there is no such file, or its path is longer than `size`.
MUST_USE bool exec_find(const char *name, const char *search, char *path, size_t size);
