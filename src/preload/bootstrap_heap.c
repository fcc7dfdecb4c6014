// SPDX-License-Identifier: MIT
// bootstrap_heap: see bootstrap_heap.h. Before each block lie 16 bytes that hold its size.
#include "preload/bootstrap_heap.h"

#include <stdatomic.h>

#define HEADER_BYTES 16u

_Alignas(16) uint8_t g_bootstrap_heap[BOOTSTRAP_HEAP_BYTES];
static _Atomic size_t g_bootstrap_used;

void *bootstrap_heap_take(size_t size_bytes)
{
    if (size_bytes > BOOTSTRAP_HEAP_BYTES) {
        return NULL;
    }
    const size_t bytes = HEADER_BYTES + ((size_bytes + 15) & ~(size_t)15);
    size_t used = atomic_load_explicit(&g_bootstrap_used, memory_order_relaxed);
    do {
        if (used + bytes > BOOTSTRAP_HEAP_BYTES) {
            return NULL;
        }
        // Relaxed: hands out disjoint ranges, publishes nothing.
    } while (!atomic_compare_exchange_weak_explicit(&g_bootstrap_used, &used, used + bytes,
                                                    memory_order_relaxed, memory_order_relaxed));
    uint8_t *header = g_bootstrap_heap + used;
    __builtin_memcpy(header, &size_bytes, sizeof(size_bytes));
    return header + HEADER_BYTES;
}

size_t bootstrap_heap_size(const void *block)
{
    size_t size_bytes;
    __builtin_memcpy(&size_bytes, (const uint8_t *)block - HEADER_BYTES, sizeof(size_bytes));
    return size_bytes;
}
