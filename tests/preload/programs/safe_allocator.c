// SPDX-License-Identifier: MIT
// safe_allocator: a malloc that a signal handler may call at any time, for signals.c. Preloaded
// behind cairn's library, as the next in line.
//
// One atomic add into a ring of memory that is never given back: blocks are handed out again after
// 256 MiB of others. Nothing to lock, nothing to leave half way.
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define ARENA_BYTES ((size_t)256 << 20)

static _Alignas(64) uint8_t arena[ARENA_BYTES + (1u << 20)];
static atomic_size_t used;

void *malloc(size_t size)
{
    if (size > (1u << 20) - 16) {
        return NULL;
    }
    const size_t bytes = (size + 31) & ~(size_t)15;
    uint8_t *block = arena + atomic_fetch_add(&used, bytes) % ARENA_BYTES;
    memcpy(block, &size, sizeof(size));
    return block + 16;
}

void free(void *block)
{
    (void)block;
}

void *calloc(size_t count, size_t size)
{
    void *block = malloc(count * size);
    return block != NULL ? memset(block, 0, count * size) : NULL;
}

void *realloc(void *block, size_t size)
{
    void *moved = malloc(size);
    if (moved != NULL && block != NULL) {
        size_t old_size;
        memcpy(&old_size, (uint8_t *)block - 16, sizeof(old_size));
        memcpy(moved, block, old_size < size ? old_size : size);
    }
    return moved;
}
