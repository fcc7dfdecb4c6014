// SPDX-License-Identifier: MIT
// handover_allocator: an allocator to preload behind cairn's library. It has one address for blocks
// of HANDOVER_BYTES, so that a test knows which thread has it at which moment.
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "handover.h"

// glibc's own functions, under names that no library replaces.
extern void *__libc_malloc(size_t size);
extern void *__libc_realloc(void *block, size_t size);
extern void __libc_free(void *block);

static _Alignas(16) char g_block[HANDOVER_BYTES];
static atomic_int g_is_taken;

void *malloc(size_t size)
{
    return size == HANDOVER_BYTES && atomic_exchange(&g_is_taken, 1) == 0 ? g_block
                                                                          : __libc_malloc(size);
}

void free(void *block)
{
    if (block == g_block) {
        atomic_store(&g_is_taken, 0);
    } else {
        __libc_free(block);
    }
}

void *realloc(void *block, size_t size)
{
    if (block != g_block) {
        return __libc_realloc(block, size);
    }
    void *moved = __libc_malloc(size);
    memcpy(moved, block, size < HANDOVER_BYTES ? size : HANDOVER_BYTES);
    atomic_store(&g_is_taken, 0);
    handover_moved();
    return moved;
}
