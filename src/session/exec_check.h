// SPDX-License-Identifier: MIT
// exec_check: whether what the kernel is about to execute can be recorded, and if not, why.
//
// Follows the interpreters of scripts as the kernel does and reads the head of the ELF file behind
// them: its class and machine, its interpreter (PT_INTERP), the libraries that it asks for
// (DT_NEEDED) and whether it changes the identity. A library that is preloaded cannot be in a
// static program; it breaks one of another libc (musl) and one with a sanitizer, whose library has
// to be the first; and the loader complains about it in a 32-bit program.
//
// Asked by the hooks of exec inside the target, the children of vfork among them, and by the
// recorder for the program that it starts. Trust: the file may be anything; each offset is a
// position for pread, so nothing out of bounds can be reached, and all loops are capped.
// Context: T and H; raw system calls only, async-signal-safe, errno kept, no memory but the stack.
// Failure: what cannot be read has no obstacle, so that it is tried; execve will say what is wrong.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"

// X(name, key as in JSON, phrase for people). Why an exec goes unrecorded: by the file itself, by
// its environment, or by where it is executed.
#define EXEC_OBSTACLES(X)                                                                  \
    X(NONE, "", "")                                                                        \
    X(STATIC, "static", "static executable")                                               \
    X(BITS32, "bits32", "32-bit program")                                                  \
    X(MACHINE, "machine", "built for another kind of processor")                           \
    X(LIBC, "libc", "built for another libc than glibc (musl)")                            \
    X(SANITIZER, "sanitizer", "built with a sanitizer")                                    \
    X(IDENTITY, "identity", "changes its identity (setuid, setgid, capabilities)")         \
    X(ENVIRONMENT, "environment", "started without LD_PRELOAD")                            \
    X(LIBRARY, "library", "in a file system without cairn's library")                      \
    X(UNREACHABLE, "unreachable", "in namespaces from which the recorder is out of reach") \
    X(SECCOMP, "seccomp", "under a seccomp filter")

enum exec_obstacle {
#define X(name, key, phrase) EXEC_##name,
    EXEC_OBSTACLES(X)
#undef X
    EXEC_OBSTACLE_COUNT
};

// What the kernel executes in the end: `path` itself, or the interpreter of the script that it is.
// EXEC_NONE: nothing stands in the way, as far as the file tells.
enum exec_obstacle exec_check(const char *path);

// Whether `path` is the loader of shared libraries itself, which runs the program that its
// arguments name.
bool exec_check_is_loader(const char *path);

// Finds `name` as execvp(3) does, along `search` (the value of PATH; NULL: the default) if it has
// no slash. False: there is no such file, or its path is longer than `size`.
MUST_USE bool exec_find(const char *name, const char *search, char *path, size_t size);
