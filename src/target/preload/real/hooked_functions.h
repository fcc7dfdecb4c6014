// SPDX-License-Identifier: MIT
// hooked_functions: the list of all functions that the preload library exports.
//
// exports.map must name the same symbols; a test compares them with the built library.
//
// Left out on purpose:
//   pthread_create     threads announce themselves by their first event
//   mallocx and the rest of jemalloc's own interface, tc_*, mi_*
//                      programs detect such an allocator by testing exactly these symbols, which
//                      would then be ours; and a plugin that brings its own copy would be bound to
//                      ours without a next definition to call. Their standard entry points (malloc,
//                      operator new) are hooked as usual.
#pragma once

#include <stddef.h>

// X(name, result type, parameters, arguments, the result while there is no real function)
#define ALLOCATOR_FUNCTIONS(X)                                                                  \
    X(malloc, void *, (size_t size), (size), refuse())                                          \
    X(calloc, void *, (size_t count, size_t size), (count, size), refuse())                     \
    X(realloc, void *, (void *block, size_t size), (block, size), refuse())                     \
    X(memalign, void *, (size_t alignment, size_t size), (alignment, size), refuse())           \
    X(aligned_alloc, void *, (size_t alignment, size_t size), (alignment, size), refuse())      \
    X(valloc, void *, (size_t size), (size), refuse())                                          \
    X(pvalloc, void *, (size_t size), (size), refuse())                                         \
    X(posix_memalign, int, (void **out, size_t alignment, size_t size), (out, alignment, size), \
      ENOMEM)                                                                                   \
    X(malloc_usable_size, size_t, (void *block), (block), 0)

// operator new and new[]: X(mangled name, parameters, arguments, alignment, may throw). PLAIN are
// those without an alignment; the runtime's own call malloc and free for them.
// The Itanium C++ ABI's names; m is size_t, St11align_val_t std::align_val_t, RKSt9nothrow_t
// std::nothrow_t const &.
#define PLAIN_NEW_OPERATORS(X)                                                            \
    X(_Znwm, (size_t size), (size), 0, true)                                              \
    X(_Znam, (size_t size), (size), 0, true)                                              \
    X(_ZnwmRKSt9nothrow_t, (size_t size, const void *nothrow), (size, nothrow), 0, false) \
    X(_ZnamRKSt9nothrow_t, (size_t size, const void *nothrow), (size, nothrow), 0, false)
#define ALIGNED_NEW_OPERATORS(X)                                                                 \
    X(_ZnwmSt11align_val_t, (size_t size, size_t alignment), (size, alignment), alignment, true) \
    X(_ZnamSt11align_val_t, (size_t size, size_t alignment), (size, alignment), alignment, true) \
    X(_ZnwmSt11align_val_tRKSt9nothrow_t, (size_t size, size_t alignment, const void *nothrow),  \
      (size, alignment, nothrow), alignment, false)                                              \
    X(_ZnamSt11align_val_tRKSt9nothrow_t, (size_t size, size_t alignment, const void *nothrow),  \
      (size, alignment, nothrow), alignment, false)
#define NEW_OPERATORS(X)   \
    PLAIN_NEW_OPERATORS(X) \
    ALIGNED_NEW_OPERATORS(X)

// operator delete and delete[]: X(mangled name, parameters, arguments)
#define PLAIN_DELETE_OPERATORS(X)                                                 \
    X(_ZdlPv, (void *block), (block))                                             \
    X(_ZdaPv, (void *block), (block))                                             \
    X(_ZdlPvm, (void *block, size_t size), (block, size))                         \
    X(_ZdaPvm, (void *block, size_t size), (block, size))                         \
    X(_ZdlPvRKSt9nothrow_t, (void *block, const void *nothrow), (block, nothrow)) \
    X(_ZdaPvRKSt9nothrow_t, (void *block, const void *nothrow), (block, nothrow))
#define ALIGNED_DELETE_OPERATORS(X)                                                              \
    X(_ZdlPvSt11align_val_t, (void *block, size_t alignment), (block, alignment))                \
    X(_ZdaPvSt11align_val_t, (void *block, size_t alignment), (block, alignment))                \
    X(_ZdlPvmSt11align_val_t, (void *block, size_t size, size_t alignment),                      \
      (block, size, alignment))                                                                  \
    X(_ZdaPvmSt11align_val_t, (void *block, size_t size, size_t alignment),                      \
      (block, size, alignment))                                                                  \
    X(_ZdlPvSt11align_val_tRKSt9nothrow_t, (void *block, size_t alignment, const void *nothrow), \
      (block, alignment, nothrow))                                                               \
    X(_ZdaPvSt11align_val_tRKSt9nothrow_t, (void *block, size_t alignment, const void *nothrow), \
      (block, alignment, nothrow))
#define DELETE_OPERATORS(X)   \
    PLAIN_DELETE_OPERATORS(X) \
    ALIGNED_DELETE_OPERATORS(X)
