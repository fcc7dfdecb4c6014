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
#include "target/preload/exports/hooks.h"
#include "target/preload/exports/recorded_hooks.h"
#include "target/preload/real/real_functions.h"
#include "target/preload/record/record_hot.h"

// Record a block that a hook is about to return, for the hook's caller. A macro, because the
// caller's registers are found from the hook's own frame.
#define RECORD_BLOCK(block, size_bytes)                              \
    do {                                                             \
        if (LIKELY((block) != NULL)) {                               \
            const struct unwind_regs caller_ = unwind_caller_regs(); \
            record_alloc(&caller_, block, size_bytes);               \
        }                                                            \
    } while (0)

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
    void *block = g_real.memalign(alignment, size);
    RECORD_BLOCK(block, size);
    return block;
}

EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
    void *block = g_real.aligned_alloc(alignment, size);
    RECORD_BLOCK(block, size);
    return block;
}

EXPORT void *valloc(size_t size)
{
    void *block = g_real.valloc(size);
    RECORD_BLOCK(block, size);
    return block;
}

EXPORT void *pvalloc(size_t size)
{
    void *block = g_real.pvalloc(size);
    RECORD_BLOCK(block, size);
    return block;
}

EXPORT int posix_memalign(void **out, size_t alignment, size_t size)
{
    const int result = g_real.posix_memalign(out, alignment, size);
    if (result == 0) {
        RECORD_BLOCK(*out, size);
    }
    return result;
}

// Do realloc and reallocarray for `caller`. The allocator decides about realloc(block, 0): it frees
// in any case, and may return a new block.
ALWAYS_INLINE void *reallocate(const struct unwind_regs *caller, void *block, size_t size)
{
    if (block != NULL && size == 0) {
        record_free(block);
    }
    if (block == NULL || size == 0) {
        void *fresh = g_real.realloc(block, size);
        if (fresh != NULL) {
            record_alloc(caller, fresh, size);
        }
        return fresh;
    }
    const struct freed_note freed = record_realloc_begins(block);
    void *moved = g_real.realloc(block, size);
    if (moved != NULL) {
        record_realloc(caller, block, moved, size, freed);
    } else {
        record_realloc_fails(block, freed);
    }
    record_realloc_ends(freed);
    return moved;
}

void *realloc_recorded(void *block, size_t size)
{
    const struct unwind_regs caller = unwind_caller_regs();
    return reallocate(&caller, block, size);
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
    return reallocate(&caller, block, bytes);
}

void free_recorded(void *block)
{
    if (UNLIKELY(block == NULL)) {
        return;
    }
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
