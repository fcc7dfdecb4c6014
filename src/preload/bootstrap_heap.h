// SPDX-License-Identifier: MIT
// bootstrap_heap: memory for those who allocate before the real allocator is known.
//
// dlsym() may allocate while it looks the real malloc up for us. It gets blocks from a small static
// array, which are never reused; free(), realloc() and malloc_usable_size() know them by their
// address. They are not part of the program's heap and not recorded.
//
// Context: T, any thread. Failure: NULL when the array is used up.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

#define BOOTSTRAP_HEAP_BYTES (32u << 10)

extern uint8_t g_bootstrap_heap[BOOTSTRAP_HEAP_BYTES];

// True if `block` came from here.
ALWAYS_INLINE bool bootstrap_heap_owns(const void *block)
{
    return (uintptr_t)block - (uintptr_t)g_bootstrap_heap < BOOTSTRAP_HEAP_BYTES;
}

// A zeroed block, aligned to 16 bytes.
void *bootstrap_heap_take(size_t size_bytes);

// The size that a block was asked for.
size_t bootstrap_heap_size(const void *block);
