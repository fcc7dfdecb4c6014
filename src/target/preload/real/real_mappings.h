// SPDX-License-Identifier: MIT
// real_mappings: the next definitions of mmap and its kin, in the loader's search order.
//
// Like real_functions.h, each pointer begins at a stub that looks all of them up. Context: T,
// anywhere, as definitions.h. Failure: where libc lacks mmap, munmap or mremap, they call the
// kernel, as libc's do; brk and sbrk, which share a variable with libc's malloc, are refused.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// X(name, result type, parameters, arguments, the result while there is no real function)
#define MAPPING_FUNCTIONS(X)                                                                     \
    X(mmap, void *, (void *address, size_t size, int prot, int flags, int fd, off_t offset),     \
      (address, size, prot, flags, fd, offset),                                                  \
      with_errno(sys_mmap(address, size, prot, flags, fd, offset)))                              \
    X(mmap64, void *, (void *address, size_t size, int prot, int flags, int fd, off_t offset),   \
      (address, size, prot, flags, fd, offset),                                                  \
      with_errno(sys_mmap(address, size, prot, flags, fd, offset)))                              \
    X(munmap, int, (void *address, size_t size), (address, size),                                \
      with_errno(sys_munmap(address, size)))                                                     \
    X(mremap, void *, (void *old, size_t old_size, size_t size, int flags, void *address),       \
      (old, old_size, size, flags, address), kernel_mremap(old, old_size, size, flags, address)) \
    X(brk, int, (void *end), (end), with_errno(-ENOMEM))                                         \
    X(sbrk, void *, (intptr_t increment), (increment), with_errno(-ENOMEM))

struct real_mappings {
#define X(name, result, parameters, arguments, answer) result(*name) parameters;
    MAPPING_FUNCTIONS(X)
#undef X
};

extern struct real_mappings g_real_mappings;

// Look them up, unless that was done before.
void real_mappings_resolve(void);
