// SPDX-License-Identifier: MIT
// own_pool: a pool under names of its own, from which blocks are only taken. Its functions call
// each other. For linked_allocator.c with the prefix my_pool_.
#include <stddef.h>
#include <stdint.h>
#include <string.h>

void *my_pool_malloc(size_t size);
void my_pool_free(void *block);
void *my_pool_calloc(size_t count, size_t size);
void *my_pool_realloc(void *block, size_t size);
int my_pool_posix_memalign(void **block, size_t alignment, size_t size);
void *my_pool_aligned_alloc(size_t alignment, size_t size);

#if defined(__x86_64__)
// Too short for a jump: another function follows after three bytes.
__asm__(".globl my_pool_none\n"
        ".type my_pool_none, @function\n"
        "my_pool_none:\n"
        "    xorl %eax, %eax\n"
        "    ret\n"
        ".size my_pool_none, . - my_pool_none\n"
        ".type my_pool_next, @function\n"
        "my_pool_next:\n"
        "    movl $1, %eax\n"
        "    ret\n"
        ".size my_pool_next, . - my_pool_next\n");
#endif

enum {
    POOL_BYTES = 64 << 20,
    SIZE_BYTES = 16, // before each block: its size
};

static _Alignas(4096) unsigned char g_pool[POOL_BYTES];
static size_t g_used;

void *my_pool_aligned_alloc(size_t alignment, size_t size)
{
    const size_t at = (g_used + SIZE_BYTES + alignment - 1) / alignment * alignment;
    if (at + size > POOL_BYTES) {
        return NULL;
    }
    g_used = at + size;
    memcpy(g_pool + at - SIZE_BYTES, &size, sizeof(size));
    return g_pool + at;
}

void *my_pool_malloc(size_t size)
{
    return my_pool_aligned_alloc(16, size);
}

void my_pool_free(void *block)
{
    if (block != NULL) {
        *(unsigned char *)block = 0xdd;
    }
}

void *my_pool_calloc(size_t count, size_t size)
{
    return my_pool_malloc(count * size); // the pool is zero where it was not used
}

void *my_pool_realloc(void *block, size_t size)
{
    size_t old_size;
    memcpy(&old_size, (unsigned char *)block - SIZE_BYTES, sizeof(old_size));
    void *moved = my_pool_malloc(size);
    if (moved != NULL) {
        memcpy(moved, block, old_size < size ? old_size : size);
        my_pool_free(block);
    }
    return moved;
}

int my_pool_posix_memalign(void **block, size_t alignment, size_t size)
{
    *block = my_pool_aligned_alloc(alignment, size);
    return *block != NULL ? 0 : 12;
}
