// SPDX-License-Identifier: MIT
// block_events: what hooks of any allocator do with a block: call the allocator and record it.
//
// Compile with frame pointers: unwind_caller_regs() reads the hook's own frame, which is why all of
// this is inlined. Context: T, any caller.
#pragma once

#include <stddef.h>

#include "base/compiler.h"
#include "target/preload/record/record.h"
#include "target/unwind/unwind.h"

// Record a block that a hook is about to return, for the hook's caller.
ALWAYS_INLINE void *record_block_of_caller(void *block, size_t size_bytes)
{
    if (LIKELY(block != NULL)) {
        const struct unwind_regs caller = unwind_caller_regs();
        record_alloc(&caller, block, size_bytes);
    }
    return block;
}

// Do realloc for `caller` with the allocator's own. The allocator decides about realloc(block, 0):
// it frees in any case, and may return a new block.
ALWAYS_INLINE void *record_reallocation(const struct unwind_regs *caller,
                                        void *(*real)(void *block, size_t size),
                                        void *block,
                                        size_t size)
{
    if (block != NULL && size == 0) {
        record_free(block);
    }
    if (block == NULL || size == 0) {
        void *fresh = real(block, size);
        if (fresh != NULL) {
            record_alloc(caller, fresh, size);
        }
        return fresh;
    }
    const struct freed_note freed = record_realloc_begins(block);
    void *moved = real(block, size);
    if (moved != NULL) {
        record_realloc(caller, block, moved, size, freed);
    } else {
        record_realloc_fails(freed);
    }
    return moved;
}
