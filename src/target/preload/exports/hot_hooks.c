// SPDX-License-Identifier: MIT
// hot_hooks: malloc, calloc and free, as far as most calls get.
//
// Without --sample they jump to recorded_hooks.h. With it nearly all blocks only pass, which needs
// hardly more instructions than the call of the real function: so this file is compiled without
// frame pointers, and jumps to a function with a frame for the rare block that is chosen. Context:
// T, any caller.
#include "base/compiler.h"
#include "target/preload/exports/hooks.h"
#include "target/preload/exports/recorded_hooks.h"
#include "target/preload/real/real_functions.h"
#include "target/preload/record/record_hot.h"

// Has the hook's caller for its own, because it is jumped to.
static NOINLINE __attribute__((optimize("no-omit-frame-pointer"))) void *
record_chosen(void *block, size_t size_bytes)
{
    const struct unwind_regs caller = unwind_caller_regs();
    record_alloc(&caller, block, size_bytes);
    return block;
}

// Record a block of a process that samples.
ALWAYS_INLINE void *count_block(void *block, size_t size_bytes)
{
    if (block == NULL || record_alloc_passes(thread_way_pass(), thread_way_state(), size_bytes)) {
        return block;
    }
    return record_chosen(block, size_bytes);
}

// Functions of their own, so that malloc and calloc save no register before they jump.
static NOINLINE void *malloc_counted(size_t size)
{
    return count_block(g_real.malloc(size), size);
}

static NOINLINE void *calloc_counted(size_t count, size_t size)
{
    return count_block(g_real.calloc(count, size), count * size); // overflowed: there is no block
}

EXPORT void *malloc(size_t size)
{
    return record_bytes_are_in_use() ? malloc_counted(size) : malloc_recorded(size);
}

EXPORT void *calloc(size_t count, size_t size)
{
    return record_bytes_are_in_use() ? calloc_counted(count, size) : calloc_recorded(count, size);
}

EXPORT void free(void *block)
{
    if (record_free_passes(thread_way_pass(), block)) {
        g_real.free(block);
    } else {
        free_recorded(block);
    }
}
