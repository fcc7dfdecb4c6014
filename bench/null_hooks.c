// SPDX-License-Identifier: MIT
// null_hooks: hooks of malloc and free that do nothing, to preload: the least that any preloaded
// profiler costs. Each jumps to the next definition through a pointer.
#include "next_allocator.h"

__attribute__((constructor)) static void start(void)
{
    find_allocator();
}

void *malloc(size_t size)
{
    return g_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return g_calloc(count, size);
}

void *realloc(void *block, size_t size)
{
    return g_realloc(block, size);
}

void free(void *block)
{
    g_free(block);
}
