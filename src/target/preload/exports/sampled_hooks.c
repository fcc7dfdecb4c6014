// SPDX-License-Identifier: MIT
// sampled_hooks: see the header.
#include "target/preload/exports/sampled_hooks.h"

#include "base/compiler.h"
#include "target/preload/real/real_functions.h"
#include "target/preload/record/record_hot.h"

// Has the hook's caller for its own, because it is jumped to.
static NOINLINE void *choose(void *block, size_t size_bytes)
{
    const struct unwind_regs caller = unwind_caller_regs();
    record_alloc(&caller, block, size_bytes);
    return block;
}

ALWAYS_INLINE void *count_block(void *block, size_t size_bytes)
{
    if (block == NULL || record_alloc_passes(thread_way_state(), block, size_bytes)) {
        return block;
    }
    return choose(block, size_bytes);
}

void *malloc_sampled(size_t size)
{
    return count_block(g_real.malloc(size), size);
}

void *calloc_sampled(size_t count, size_t size)
{
    return count_block(g_real.calloc(count, size), count * size);
}
