// SPDX-License-Identifier: MIT
// own_malloc: an executable that exports its own allocator, as programs with a static jemalloc do.
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static _Alignas(16) uint8_t arena[1 << 20];
static size_t used;

void *malloc(size_t size)
{
    used += (size + 15) & ~(size_t)15;
    return used <= sizeof(arena) ? arena + used - ((size + 15) & ~(size_t)15) : NULL;
}

void free(void *block)
{
    (void)block;
}

void *calloc(size_t count, size_t size)
{
    return malloc(count * size); // the arena is zero and never reused
}

void *realloc(void *block, size_t size)
{
    void *moved = malloc(size);
    return block != NULL && moved != NULL ? memcpy(moved, block, size) : moved;
}

int main(void)
{
    char *text = strdup("hello");
    return text != NULL ? 0 : 1;
}
