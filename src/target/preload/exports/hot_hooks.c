// SPDX-License-Identifier: MIT
// hot_hooks: malloc, calloc, realloc, free, and operator new and delete, as far as most calls get.
//
// Without --sample they jump to recorded_hooks.h. With it nearly all blocks only pass, which needs
// hardly more instructions than the call of the real function: so this file is compiled without
// frame pointers, and jumps to a function with a frame for the rare block that is chosen. Context:
// T, any caller.
#include "base/compiler.h"
#include "target/preload/exports/hooks.h"
#include "target/preload/exports/passing_operators.h"
#include "target/preload/exports/recorded_hooks.h"
#include "target/preload/real/real_functions.h"
#include "target/preload/record/record_hot.h"

// Has the hook's caller for its own, because it is jumped to.
static NOINLINE __attribute__((cold, optimize("no-omit-frame-pointer"))) void *
record_chosen(void *block, size_t size_bytes)
{
    const struct unwind_regs caller = unwind_caller_regs();
    record_alloc(&caller, block, size_bytes);
    return block;
}

// Count a block of a thread that had a budget before the block was allocated.
ALWAYS_INLINE void *count_block(void *block, size_t size_bytes)
{
    if (UNLIKELY(block == NULL) ||
        LIKELY(record_alloc_passes(thread_way_pass(), thread_way_state(), size_bytes))) {
        return block;
    }
    return record_chosen(block, size_bytes);
}

EXPORT void *malloc(size_t size)
{
    if (UNLIKELY(!record_may_pass())) {
        return malloc_recorded(size);
    }
    return count_block(g_real.malloc(size), size);
}

EXPORT void *calloc(size_t count, size_t size)
{
    if (UNLIKELY(!record_may_pass())) {
        return calloc_recorded(count, size);
    }
    return count_block(g_real.calloc(count, size), count * size); // overflowed: there is no block
}

// If the old block was not chosen, its free is not recorded. Without a new block it stays, or was
// freed because of a size of 0.
EXPORT void *realloc(void *block, size_t size)
{
    if (UNLIKELY(!record_free_passes(thread_way_pass(), block))) {
        return realloc_recorded(block, size);
    }
    return count_block(g_real.realloc(block, size), size);
}

EXPORT void free(void *block)
{
    if (record_free_passes(thread_way_pass(), block)) {
        g_real.free(block);
    } else {
        free_recorded(block);
    }
}

EXPORT size_t malloc_usable_size(void *block)
{
    return g_real.malloc_usable_size(block);
}

// A block that does not pass is given back, and the next operator allocates it again: its malloc
// records it, with the operator on the stack. So does one that finds no memory, to throw.
#define X(name, parameters, arguments, alignment, throws)                                   \
    void *passing_##name parameters                                                         \
    {                                                                                       \
        size += size == 0;                                                                  \
        void *block = g_real.malloc(size);                                                  \
        if (LIKELY(block != NULL)) {                                                        \
            if (LIKELY(record_alloc_passes(thread_way_pass(), thread_way_state(), size))) { \
                return block;                                                               \
            }                                                                               \
            g_real.free(block);                                                             \
        }                                                                                   \
        return g_real.name arguments;                                                       \
    }
PLAIN_NEW_OPERATORS(X)
#undef X

#define X(name, parameters, arguments)                              \
    void passing_##name parameters                                  \
    {                                                               \
        if (LIKELY(record_free_passes(thread_way_pass(), block))) { \
            g_real.free(block);                                     \
        } else {                                                    \
            g_real.name arguments;                                  \
        }                                                           \
    }
PLAIN_DELETE_OPERATORS(X)
#undef X
