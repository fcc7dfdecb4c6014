// SPDX-License-Identifier: MIT
// hooks: prototypes of the preload library's exports, as in libc's headers and the C++ ABI.
//
// Own prototypes instead of <stdlib.h> and <malloc.h>, because libc's carry attributes (alloc_size,
// malloc, nonnull) that let the compiler assume facts that our definitions have to check. Also,
// newer and older libcs each declare only some of them. Context: T.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"
#include "target/preload/real/hooked_functions.h"
#include "target/preload/real/real_functions.h"
#include "target/preload/record/record.h"

#define X(name, result, parameters, arguments, answer) EXPORT result name parameters;
ALLOCATOR_FUNCTIONS(X)
#undef X
EXPORT void *reallocarray(void *block, size_t count, size_t size);
EXPORT void free(void *block);
EXPORT void cfree(void *block);
EXPORT void free_sized(void *block, size_t size);
EXPORT void free_aligned_sized(void *block, size_t alignment, size_t size);
EXPORT void *dlopen(const char *file, int mode);
EXPORT void *dlmopen(long namespace, const char *file, int mode);
EXPORT int dlclose(void *handle);

#define X(name, parameters, arguments, alignment, throws) EXPORT void *name parameters;
NEW_OPERATORS(X)
#undef X
#define X(name, parameters, arguments) EXPORT void name parameters;
DELETE_OPERATORS(X)
#undef X

// Do dlclose with `real`, and forget what was known of code that is unloaded.
int close_module(int (*real)(void *handle), void *handle) __attribute__((visibility("hidden")));

// Do free, whatever the name of the hook.
ALWAYS_INLINE void release_block(void *block)
{
    if (block != NULL) {
        record_free(block);
        g_real.free(block);
    }
}
