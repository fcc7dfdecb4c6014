// SPDX-License-Identifier: MIT
// real_mappings: the next definitions of mmap and its kin, in the order in which the loader would
// have found them without us.
//
// As in real_functions.h: each pointer begins at a stub that looks all of them up. Context: T,
// anywhere, as definitions.h. Failure: mmap, munmap and mremap go to the kernel, as libc's do,
// where libc has none; brk and sbrk, which share a variable with libc's malloc, are refused.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// X(name, result type, parameters, arguments, the answer while there is no real one)
#define MAPPING_FUNCTIONS(X)                                                                     \
    X(mmap, void *, (void *address, size_t size, int prot, int flags, int fd, off_t offset),     \
      (address, size, prot, flags, fd, offset),                                                  \
      told_by_errno(sys_mmap(address, size, prot, flags, fd, offset)))                           \
    X(mmap64, void *, (void *address, size_t size, int prot, int flags, int fd, off_t offset),   \
      (address, size, prot, flags, fd, offset),                                                  \
      told_by_errno(sys_mmap(address, size, prot, flags, fd, offset)))                           \
    X(munmap, int, (void *address, size_t size), (address, size),                                \
      told_by_errno(sys_munmap(address, size)))                                                  \
    X(mremap, void *, (void *old, size_t old_size, size_t size, int flags, void *address),       \
      (old, old_size, size, flags, address), kernel_mremap(old, old_size, size, flags, address)) \
    X(brk, int, (void *end), (end), told_by_errno(-ENOMEM))                                      \
    X(sbrk, void *, (intptr_t increment), (increment), told_by_errno(-ENOMEM))

struct real_mappings {
#define X(name, result, parameters, arguments, answer) result(*name) parameters;
    MAPPING_FUNCTIONS(X)
#undef X
};

extern struct real_mappings g_real_mappings;

// Looks them up if that was not done yet.
void real_mappings_resolve(void);
