// SPDX-License-Identifier: MIT
// hooks: the exported functions of C's allocator family, but those of hot_hooks.c.
//
// A hook only calls the real function, records the event, and returns the result. Only successful
// calls count, with the requested size; a malloc(0) that returns a block counts with 0 bytes. errno
// is the real function's. Functions that others define in terms of malloc (reallocarray,
// free_sized) are defined so here too, and so are exact with any allocator.
//
// Compiled with frame pointers: unwind_caller_regs() reads them. Context: T, any caller.
#include <errno.h>
#include <stddef.h>

#include "base/compiler.h"
#include "target/preload/exports/block_events.h"
#include "target/preload/exports/hooks.h"
#include "target/preload/exports/recorded_hooks.h"
#include "target/preload/real/real_functions.h"
#include "target/preload/record/record_hot.h"

void *malloc_recorded(size_t size)
{
    void *block = g_real.malloc(size);
    return LIKELY(block != NULL) ? record_alloc_hot(thread_way_state(), block, size) : NULL;
}

void *calloc_recorded(size_t count, size_t size)
{
    void *block = g_real.calloc(count, size);
    // If the product overflowed, there is no block.
    return LIKELY(block != NULL) ? record_alloc_hot(thread_way_state(), block, count * size) : NULL;
}

EXPORT void *memalign(size_t alignment, size_t size)
{
    return record_block_of_caller(g_real.memalign(alignment, size), size);
}

EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
    return record_block_of_caller(g_real.aligned_alloc(alignment, size), size);
}

EXPORT void *valloc(size_t size)
{
    return record_block_of_caller(g_real.valloc(size), size);
}

EXPORT void *pvalloc(size_t size)
{
    return record_block_of_caller(g_real.pvalloc(size), size);
}

EXPORT int posix_memalign(void **out, size_t alignment, size_t size)
{
    const int result = g_real.posix_memalign(out, alignment, size);
    if (result == 0) {
        (void)record_block_of_caller(*out, size);
    }
    return result;
}

void *realloc_recorded(void *block, size_t size)
{
    const struct unwind_regs caller = unwind_caller_regs();
    return record_reallocation(&caller, g_real.realloc, block, size);
}

EXPORT void *reallocarray(void *block, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    real_functions_resolve();
    if (UNLIKELY(g_real.realloc_before_ours != NULL)) { // few allocators have a reallocarray
        return g_real.realloc_before_ours(block, bytes);
    }
    const struct unwind_regs caller = unwind_caller_regs();
    return record_reallocation(&caller, g_real.realloc, block, bytes);
}

void free_recorded(void *block)
{
    if (UNLIKELY(block == NULL)) {
        return;
    }
    __builtin_prefetch((const uint8_t *)block - 2 * sizeof(size_t), 1); // what free reads first
    record_free_hot(thread_way_state(), block);
    g_real.free(block);
}

EXPORT void cfree(void *block)
{
    release_block(block);
}

EXPORT void free_sized(void *block, size_t size)
{
    (void)size; // a promise by the caller, not needed
    release_block(block);
}

EXPORT void free_aligned_sized(void *block, size_t alignment, size_t size)
{
    (void)alignment; // likewise
    (void)size;
    release_block(block);
}
