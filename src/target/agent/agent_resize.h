// SPDX-License-Identifier: MIT
// agent_resize: what a hook of realloc records before and after it calls the original function.
//
// As reallocate() of the preload library's hooks: the allocator decides about a size of 0.
// Context: T, in the outermost call of an allocator.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "target/preload/record/record.h"

struct agent_resizing {
    const void *old;
    uint64_t size_bytes;
    struct freed_note freed; // if is_resize
    bool is_resize;          // else an allocation, or the free of the old block
};

ALWAYS_INLINE struct agent_resizing agent_resize_begins(const void *old, uint64_t size_bytes)
{
    if (old != NULL && size_bytes == 0) {
        record_free(old);
    }
    struct agent_resizing resizing = {
        .old = old, .size_bytes = size_bytes, .is_resize = old != NULL && size_bytes != 0};
    if (resizing.is_resize) {
        resizing.freed = record_realloc_begins(old);
    }
    return resizing;
}

// `block` is what the original returned to `caller`; NULL: the old one stays, or is free.
ALWAYS_INLINE void agent_resize_ends(const struct agent_resizing *resizing,
                                     const struct unwind_regs *caller,
                                     const void *block,
                                     bool is_freed_without_block)
{
    if (block != NULL && resizing->is_resize) {
        record_realloc(caller, resizing->old, block, resizing->size_bytes, resizing->freed);
    } else if (block != NULL) {
        record_alloc(caller, block, resizing->size_bytes);
    } else if (resizing->is_resize) {
        record_realloc_fails(resizing->freed);
        if (is_freed_without_block) {
            record_free(resizing->old);
        }
    }
}
