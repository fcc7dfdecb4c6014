// SPDX-License-Identifier: MIT
// kernel_calls: the system calls by which a target is read and changed, as a table.
//
// All of src/inject/process makes these calls through the table, so that a test can let each of
// them fail once. A call returns -1 and sets errno, as libc does. Context: H.
#pragma once

#include <stddef.h>
#include <sys/types.h>

struct kernel_calls {
    long (*ptrace)(int request, int tid, void *addr, void *data);
    int (*wait)(int tid, int *status, int options); // waitpid
    int (*open)(const char *path, int flags);
    ssize_t (*read_at)(int fd, void *into, size_t len, off_t at);
    ssize_t (*write_at)(int fd, const void *from, size_t len, off_t at);
};

// The calls of libc.
extern const struct kernel_calls kernel_calls_real;
