// SPDX-License-Identifier: MIT
// real_mappings: the next definitions of mmap and its kin, in the order in which the loader would
// have found them without us.
//
// Until they are looked up, which the constructor does, mmap, munmap and mremap go straight to the
// kernel, as libc's do; so the allocators that map memory before any constructor ran are served,
// and nothing is looked up under a lock of theirs. brk and sbrk share a variable with libc's malloc
// and look the real ones up when they come early.
//
// Context: T. Single threaded in practice, idempotent in any case. Failure: what libc does not have
// keeps its way to the kernel, or refuses.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// X(name, result type, parameters, arguments)
#define MAPPING_FUNCTIONS(X)                                                                \
 X(mmap, void *, (void *address, size_t size, int prot, int flags, int fd, off_t offset),   \
   (address, size, prot, flags, fd, offset))                                                \
 X(mmap64, void *, (void *address, size_t size, int prot, int flags, int fd, off_t offset), \
   (address, size, prot, flags, fd, offset))                                                \
 X(munmap, int, (void *address, size_t size), (address, size))                              \
 X(mremap, void *, (void *old, size_t old_size, size_t size, int flags, void *address),     \
   (old, old_size, size, flags, address))                                                   \
 X(brk, int, (void *end), (end))                                                            \
 X(sbrk, void *, (intptr_t increment), (increment))

struct real_mappings {
#define X(name, result, parameters, arguments) result(*name) parameters;
    MAPPING_FUNCTIONS(X)
#undef X
};

extern struct real_mappings g_real_mappings;

// Looks them up if that was not done yet.
void real_mappings_resolve(void);
